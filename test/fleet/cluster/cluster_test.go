package cluster

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

var update = flag.Bool("update", false, "write the golden files anew")

func exampleHost(name string, number int) hosts.Host {
	return hosts.Host{Site: hosts.Site{Index: 7, Dir: "/state/demo"}, Name: name, Number: number}
}

// exampleValues are the same on every machine: the cgroup driver is not taken from the one the test runs on.
func exampleValues(h hosts.Host) kubeadmValues {
	v := valuesFor(h, "demo", "v1.36.3")
	v.CgroupDriver = "cgroupfs"
	return v
}

func assertGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "rewrite with: go test ./test/fleet/cluster -update")
}

func TestKubeadmConfigurations(t *testing.T) {
	withDNS := exampleValues(exampleHost("cp-1", 11))
	withoutDNS := withDNS
	withoutDNS.SkipCoreDNS = true
	worker := exampleValues(exampleHost("worker-1", 101))
	worker.Token, worker.CAHash = "abcdef.0123456789abcdef", "sha256:1234"
	controlPlane := exampleValues(exampleHost("cp-2", 12))
	controlPlane.Token, controlPlane.CAHash, controlPlane.ControlPlane = worker.Token, worker.CAHash, true

	for file, render := range map[string]func() ([]byte, error){
		"init.yaml":               func() ([]byte, error) { return render(initTemplate, withDNS) },
		"init-without-dns.yaml":   func() ([]byte, error) { return render(initTemplate, withoutDNS) },
		"join-worker.yaml":        func() ([]byte, error) { return render(joinTemplate, worker) },
		"join-control-plane.yaml": func() ([]byte, error) { return render(joinTemplate, controlPlane) },
	} {
		t.Run(file, func(t *testing.T) {
			got, err := render()
			require.NoError(t, err)
			assertGolden(t, file, got)
		})
	}
}

func TestHostFiles(t *testing.T) {
	h := exampleHost("worker-1", 101)
	assertGolden(t, "cni.conflist", []byte(cniConfig(h)))
	assertGolden(t, "fleet-cgroups-v1.service", []byte(cgroupUnitText([]string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"})))
	assertGolden(t, "fleet-cgroups-v2.service", []byte(cgroupUnitText(nil)))
}

func TestEveryHostHasAMachineIDOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"cp-1", "worker-1"} {
		files, err := hostFiles(exampleHost(name, 11), "registry.fleet.test/pause:3.10")
		require.NoError(t, err)
		for _, f := range files {
			if f.Path == "/etc/machine-id" {
				id := strings.TrimSpace(string(f.Content))
				assert.Regexp(t, "^[0-9a-f]{32}$", id)
				assert.False(t, seen[id])
				seen[id] = true
			}
		}
	}
	assert.Len(t, seen, 2)
}

func TestAptSourcesAreOnePerMinor(t *testing.T) {
	assert.Equal(t, "deb [signed-by=/etc/apt/keyrings/refit-kubernetes.gpg] http://mirror.fleet.test/kubernetes/v1.36/deb/ /\n",
		KubernetesSource("v1.36.3"))
	assert.Equal(t, "1.36.3-1.1", DebVersion("v1.36.3"))
}

func TestALayerIsNamedAfterAllItIsMadeFrom(t *testing.T) {
	dir := t.TempDir()
	write := func(path, content string) {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(content), 0o644))
	}
	write("key.gpg", "key")
	write("apt/kubernetes/v1.36/deb/Packages", "kubelet 1")
	write("apt/containerd/deb/Packages", "containerd 1")
	p := Packages{Kubernetes: "v1.36.3", Containerd: "v1.7.35", AptDir: filepath.Join(dir, "apt"), Keyring: filepath.Join(dir, "key.gpg"),
		Base: "/cache/rootfs/bookworm-1/root", CacheDir: "/cache"}
	name := func(p Packages, site hosts.Site) string {
		l, err := p.Layer(site, "fleet")
		require.NoError(t, err)
		return l.Dir
	}
	first := name(p, hosts.Site{Index: 1})
	assert.Regexp(t, `^/cache/layers/kubernetes-v1.36.3-containerd-v1.7.35-[0-9a-f]{12}$`, first)
	assert.Equal(t, first, name(p, hosts.Site{Index: 2}), "fleets share a layer")

	otherBase := p
	otherBase.Base = "/cache/rootfs/bookworm-2/root"
	assert.NotEqual(t, first, name(otherBase, hosts.Site{}))
	write("apt/kubernetes/v1.36/deb/Packages", "kubelet 1, packed again")
	assert.NotEqual(t, first, name(p, hosts.Site{}))

	p.Kubernetes = "v1.35.1"
	_, err := p.Layer(hosts.Site{}, "fleet")
	require.ErrorContains(t, err, "kubernetes/v1.35/deb")
}

func TestThePinOfACAIsTheHashOfItsKey(t *testing.T) {
	pem, err := os.ReadFile(filepath.Join("testdata", "ca.crt"))
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join("testdata", "ca.hash")) // openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum
	require.NoError(t, err)
	got, err := publicKeyHash(pem)
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(string(want)), got)

	_, err = publicKeyHash([]byte("no certificate"))
	require.ErrorContains(t, err, "not a PEM certificate")
}
