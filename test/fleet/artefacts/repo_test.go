package artefacts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func needTools(t *testing.T, tools ...string) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
}

func output(t *testing.T, argv ...string) string {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	require.NoErrorf(t, err, "%v: %s", argv, out)
	return string(out)
}

// smallRepo makes real packages and a real repository of one release whose binaries are tiny.
func smallRepo(t *testing.T) (dir string, c cache) {
	needTools(t, "apt-ftparchive", "dpkg-deb", "gpgv")
	m, err := newMaker(Config{CacheDir: t.TempDir(), Kubernetes: []string{"v1.37.2"}})
	require.NoError(t, err)
	bin := m.cache.path(kubernetesEntry("v1.37.2"), "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for _, name := range kubernetesCommands {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("binary "+name), 0o755))
	}
	for _, stage := range []func(*maker) ([]item, error){(*maker).keyringItems, (*maker).debItems, (*maker).aptItems} {
		items, err := stage(m)
		require.NoError(t, err)
		for _, it := range items {
			require.NoError(t, m.ensure(context.Background(), it))
		}
	}
	return m.cache.path(m.aptEntry(), "kubernetes/v1.37/deb"), m.cache
}

func TestARepositoryListsEveryPackageInBothRevisions(t *testing.T) {
	dir, _ := smallRepo(t)
	index, err := os.ReadFile(filepath.Join(dir, "Packages"))
	require.NoError(t, err)
	versions := map[string][]string{}
	for _, p := range stanzas(string(index)) {
		versions[p["Package"]] = append(versions[p["Package"]], p["Version"])
		assert.FileExists(t, filepath.Join(dir, p["Filename"]))
		assert.NotEmpty(t, p["SHA256"])
	}
	both := []string{"1.37.2-1.1", "1.37.2-2.1"}
	assert.Equal(t, map[string][]string{"kubelet": both, "kubeadm": both, "kubectl": both}, versions)
}

func TestARepositoryIsSignedSoThatGpgvAcceptsItAndNothingElse(t *testing.T) {
	dir, c := smallRepo(t)
	keyring := c.path(keyringEntry, publicKeyFile)
	assert.Contains(t, output(t, "gpgv", "--keyring", keyring, filepath.Join(dir, "InRelease")), "Good signature")
	assert.Contains(t, output(t, "gpgv", "--keyring", keyring, filepath.Join(dir, "Release.gpg"), filepath.Join(dir, "Release")), "Good signature")

	release, err := os.ReadFile(filepath.Join(dir, "Release"))
	require.NoError(t, err)
	forged := filepath.Join(t.TempDir(), "Release")
	require.NoError(t, os.WriteFile(forged, append(release, "Suite: forged\n"...), 0o644))
	require.Error(t, exec.Command("gpgv", "--keyring", keyring, filepath.Join(dir, "Release.gpg"), forged).Run())
	private, err := os.Stat(c.path(keyringEntry, privateKeyFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), private.Mode().Perm())
}

func TestPackagesShipWhatThePublicOnesShip(t *testing.T) {
	dir, _ := smallRepo(t)
	for name, want := range map[string]struct {
		files   []string
		control string
	}{
		"kubelet": {[]string{"./usr/bin/kubelet", "./usr/lib/systemd/system/kubelet.service", "./var/lib/kubelet/", "./etc/kubernetes/manifests/"}, "conntrack"},
		"kubeadm": {[]string{"./usr/bin/kubeadm", "./usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"}, "kubelet (>= 1.19.0)"},
		"kubectl": {[]string{"./usr/bin/kubectl"}, "Version: 1.37.2-1.1"},
	} {
		deb := filepath.Join(dir, name+"_1.37.2-1.1_"+runtime.GOARCH+".deb")
		listing, control := output(t, "dpkg-deb", "-c", deb), output(t, "dpkg-deb", "-f", deb)
		for _, file := range want.files {
			assert.Contains(t, listing, file+"\n", name)
		}
		assert.NotContains(t, listing, "etc/default/kubelet")
		assert.Contains(t, control, want.control)
	}
}

func TestMaintainerScriptsAreValidShell(t *testing.T) {
	for _, p := range append(append([]debPackage{}, kubernetesPackages...), containerdPackages...) {
		for which, text := range map[string]string{"postinst": p.postinst, "prerm": p.prerm, "postrm": p.postrm} {
			if text == "" {
				continue
			}
			path := filepath.Join(t.TempDir(), which)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
			output(t, "sh", "-n", path)
		}
	}
}
