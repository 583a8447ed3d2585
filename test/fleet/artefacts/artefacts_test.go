package artefacts

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realSet makes or finds a whole set of artefacts. Cold, that takes a quarter of an hour.
func realSet(t *testing.T) (Config, *Set) {
	if os.Getenv("REFIT_FLEET_ARTEFACTS") != "1" {
		t.Skip("set REFIT_FLEET_ARTEFACTS=1 to make the real artefacts")
	}
	c := Config{Kubernetes: []string{"v1.36.3", "v1.37.2"}, Containerd: []string{"v1.7.35", "v2.4.2"}}
	c.CoreDNS = os.Getenv("REFIT_FLEET_COREDNS") == "1"
	c.Progress = func(e Event) {
		if e.Phase != PhaseCached {
			t.Logf("%-45s %-8s %6s %s", e.Item, e.Phase, e.Elapsed.Round(time.Second), e.Note)
		}
	}
	missing, eta := Estimate(c)
	t.Logf("%d things to make, about %s: %v", len(missing), eta, missing)
	set, err := Ensure(context.Background(), c)
	require.NoError(t, err)
	return c, set
}

func TestRealBinariesAreStaticAndOfTheirVersion(t *testing.T) {
	c, set := realSet(t)
	static := func(path string) {
		file, err := elf.Open(path)
		require.NoError(t, err)
		libraries, err := file.ImportedLibraries()
		require.NoError(t, err)
		assert.Emptyf(t, libraries, "%s is not static", path)
		require.NoError(t, file.Close())
	}
	for _, v := range c.Kubernetes {
		for _, name := range kubernetesCommands {
			static(set.KubernetesBin(v, name))
		}
		assert.Equal(t, "Kubernetes "+v+"\n", output(t, set.KubernetesBin(v, "kubelet"), "--version"))
		assert.Equal(t, v+"\n", output(t, set.KubernetesBin(v, "kubeadm"), "version", "-o", "short"))
		static(set.EtcdBin(set.EtcdVersion(v), "etcd"))
		assert.Contains(t, output(t, set.EtcdBin(set.EtcdVersion(v), "etcdctl"), "version"), "etcdctl version: "+set.EtcdVersion(v)[1:])
	}
	for _, v := range c.Containerd {
		static(set.ContainerdBin(v, "containerd"))
		assert.Contains(t, output(t, set.ContainerdBin(v, "containerd"), "--version"), " "+v+" ")
	}
}

func TestRealRepositoriesServeAptOfAHost(t *testing.T) {
	_, set := realSet(t)
	etc := t.TempDir()
	for _, dir := range []string{"sources", "lists/partial", "cache/archives/partial", "state"} {
		require.NoError(t, os.MkdirAll(filepath.Join(etc, dir), 0o755))
	}
	source := ""
	for _, repo := range []string{"kubernetes/v1.36/deb", "kubernetes/v1.37/deb", "containerd/deb"} {
		source += "deb [signed-by=" + set.Keyring() + "] file:" + filepath.Join(set.AptDir(), repo) + "/ /\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(etc, "sources", "fleet.list"), []byte(source), 0o644))
	options := []string{"-o", "Dir::Etc::SourceList=/dev/null", "-o", "Dir::Etc::SourceParts=" + filepath.Join(etc, "sources"),
		"-o", "Dir::State=" + filepath.Join(etc, "state"), "-o", "Dir::State::Lists=" + filepath.Join(etc, "lists"),
		"-o", "Dir::Cache=" + filepath.Join(etc, "cache"), "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"}

	updated := output(t, append([]string{"apt-get", "update", "--error-on=any"}, options...)...)
	assert.NotContains(t, updated, "W:")
	versions := output(t, append([]string{"apt-cache", "madison", "kubelet", "containerd.io"}, options...)...)
	for _, want := range []string{"1.36.3-1.1", "1.37.2-1.1", "1.37.2-2.1", "1.7.35-1", "2.4.2-1"} {
		assert.Contains(t, versions, " "+want+" ")
	}
}

func TestRealImagesAreThoseKubeadmWants(t *testing.T) {
	c, set := realSet(t)
	have := map[string]string{}
	for _, image := range set.Images() {
		have[image.Ref] = image.Tar
		_, err := tarball.ImageFromPath(image.Tar, nil)
		require.NoErrorf(t, err, "%s", image.Ref)
	}
	for _, v := range c.Kubernetes {
		wanted, err := os.ReadFile(set.cache.path(kubernetesEntry(v), imagesFile))
		require.NoError(t, err)
		for _, ref := range strings.Fields(string(wanted)) {
			if c.CoreDNS || !strings.Contains(ref, "/coredns:") {
				assert.Contains(t, have, ref)
			}
		}
	}
	assert.Contains(t, have, "registry.fleet.test/app:v1")
}

func TestTheRealRootFilesystemBelongsToNoMachine(t *testing.T) {
	_, set := realSet(t)
	root := set.RootFS()
	sources, err := filepath.Glob(filepath.Join(root, "etc/apt/sources.list*/*"))
	require.NoError(t, err)
	assert.Empty(t, sources)
	assert.NoFileExists(t, filepath.Join(root, "etc/apt/sources.list"))
	id, err := os.ReadFile(filepath.Join(root, "etc/machine-id"))
	require.NoError(t, err)
	assert.Empty(t, id)
	for _, program := range []string{"usr/bin/systemctl", "usr/sbin/runc", "usr/sbin/nft", "usr/bin/gpgv", "usr/lib/cni/bridge", "usr/sbin/conntrack"} {
		assert.FileExists(t, filepath.Join(root, program))
	}
	assert.NoFileExists(t, filepath.Join(root, "usr/bin/containerd"))
	if os.Geteuid() == 0 {
		out, err := exec.Command("chroot", root, "dpkg", "--audit").CombinedOutput()
		require.NoErrorf(t, err, "%s", out)
		assert.Empty(t, string(out), "every package is wholly installed")
	}
}

func TestARealSetThatIsCachedLoadsAtOnce(t *testing.T) {
	c, _ := realSet(t)
	start := time.Now()
	_, err := Ensure(context.Background(), c)
	require.NoError(t, err)
	assert.Less(t, time.Since(start), time.Second)
}
