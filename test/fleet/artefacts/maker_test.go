package artefacts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const listedImages = `registry.fleet.test/kube-apiserver:v1.37.2
registry.fleet.test/coredns:v1.14.6
registry.fleet.test/pause:3.10.2
registry.fleet.test/etcd:3.7.0-0
`

// cached puts entries into a cache as if they had been made.
func cached(t *testing.T, dir string, entries ...string) {
	for _, entry := range entries {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, entry), 0o755))
		if strings.HasPrefix(entry, "kubernetes/") {
			require.NoError(t, os.WriteFile(filepath.Join(dir, entry, imagesFile), []byte(listedImages), 0o644))
		}
	}
}

func TestAnEstimateOfAnEmptyCacheNamesEverything(t *testing.T) {
	missing, eta := Estimate(Config{CacheDir: t.TempDir(), Kubernetes: []string{"v1.36.3", "v1.37.2"}, Containerd: []string{"v2.4.2"}})
	for _, name := range []string{
		"Kubernetes v1.36.3", "Kubernetes v1.37.2", "etcd for Kubernetes v1.37.2", "containerd v2.4.2",
		"packages kubernetes 1.37.2-2.1", "apt repositories", "image kube-proxy:v1.36.3", "image app:v1",
	} {
		assert.Contains(t, missing, name)
	}
	assert.Greater(t, eta, time.Minute)
}

func TestAnEstimateLeavesOutWhatIsCached(t *testing.T) {
	c := Config{CacheDir: t.TempDir(), Kubernetes: []string{"v1.37.2"}, Containerd: []string{"v2.4.2"}}
	before, etaBefore := Estimate(c)
	cached(t, c.CacheDir, kubernetesEntry("v1.37.2"), etcdEntry("v3.7.0"), containerdEntry("v2.4.2"))
	after, etaAfter := Estimate(c)
	assert.Subset(t, before, []string{"Kubernetes v1.37.2", "containerd v2.4.2"})
	for _, name := range after {
		assert.False(t, strings.HasPrefix(name, "Kubernetes") || strings.HasPrefix(name, "etcd") || strings.HasPrefix(name, "containerd"), name)
	}
	assert.Contains(t, after, "image etcd:3.7.0-0", "the release that is there says which etcd it wants")
	assert.Less(t, etaAfter, etaBefore)
}

func TestVersionsThatNameNoReleaseAreRefused(t *testing.T) {
	for name, c := range map[string]Config{
		"a minor":             {Kubernetes: []string{"v1.37"}},
		"without v":           {Kubernetes: []string{"1.37.2"}},
		"a path":              {Kubernetes: []string{"v1.37.2/../.."}},
		"of containerd":       {Kubernetes: []string{"v1.37.2"}, Containerd: []string{"latest"}},
		"no Kubernetes named": {},
	} {
		t.Run(name, func(t *testing.T) {
			c.CacheDir = t.TempDir()
			_, err := newMaker(c)
			require.ErrorContains(t, err, "like v1.37.2")
			missing, eta := Estimate(c)
			assert.Empty(t, missing)
			assert.Zero(t, eta)
		})
	}
}

func TestTheEtcdVersionIsThatOfTheImageKubeadmWants(t *testing.T) {
	for list, want := range map[string]string{
		"registry.fleet.test/etcd:3.6.8-0\n":      "v3.6.8",
		"registry.fleet.test/etcd:v3.7.0-1\n":     "v3.7.0",
		"registry.fleet.test/etcd:3.8.0-rc.0-0\n": "v3.8.0-rc.0",
		"registry.fleet.test/pause:3.10\n":        "",
	} {
		c := cache{dir: t.TempDir()}
		cached(t, c.dir, kubernetesEntry("v1.37.2"))
		require.NoError(t, os.WriteFile(c.path(kubernetesEntry("v1.37.2"), imagesFile), []byte(list), 0o644))
		assert.Equal(t, want, c.etcdVersion("v1.37.2"), list)
	}
}

func TestTheNewestKubernetesIsPackagedTwice(t *testing.T) {
	m := &maker{Config: Config{Kubernetes: []string{"v1.37.10", "v1.36.3", "v1.37.9"}, Containerd: []string{"v1.7.35"}}}
	got := map[string][]string{}
	for _, b := range m.debBuilds() {
		got[b.repo] = append(got[b.repo], b.version())
	}
	assert.Equal(t, map[string][]string{
		"kubernetes/v1.37/deb": {"1.37.10-1.1", "1.37.10-2.1", "1.37.9-1.1"},
		"kubernetes/v1.36/deb": {"1.36.3-1.1"},
		"containerd/deb":       {"1.7.35-1"},
	}, got)
}

func TestImagesSharedByReleasesAreMadeOnce(t *testing.T) {
	m := &maker{Config: Config{Kubernetes: []string{"v1.36.3", "v1.37.2"}}, cache: cache{dir: t.TempDir()}}
	cached(t, m.cache.dir, kubernetesEntry("v1.36.3"), kubernetesEntry("v1.37.2"))
	count := map[string]int{}
	for _, b := range m.imageBuilds() {
		count[b.ref()]++
	}
	assert.Equal(t, 1, count["registry.fleet.test/pause:3.10.2"])
	assert.Equal(t, 1, count["registry.fleet.test/etcd:3.7.0-0"])
	assert.Equal(t, 1, count["registry.fleet.test/kube-apiserver:v1.36.3"])
	assert.Equal(t, 1, count["registry.fleet.test/kube-apiserver:v1.37.2"])
}

func TestContainerdTwoIsAnotherModuleThanContainerdOne(t *testing.T) {
	assert.Equal(t, "github.com/containerd/containerd", containerdModule("v1.7.35"))
	assert.Equal(t, "github.com/containerd/containerd/v2", containerdModule("v2.4.2"))
}

func TestTheGeneratedModuleRepeatsWhatTheReleaseReplaces(t *testing.T) {
	var mod goModule
	require.NoError(t, json.Unmarshal([]byte(`{"Go": "1.26.0", "Replace": [
		{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
		{"Old": {"Path": "example.test/a", "Version": "v1.0.0"}, "New": {"Path": "example.test/fork", "Version": "v1.1.0"}},
		{"Old": {"Path": "example.test/local"}, "New": {"Path": "../local"}}]}`), &mod))
	assert.Equal(t, `module fleetbuild

go 1.26.0

require k8s.io/kubernetes v1.37.2
replace k8s.io/api => k8s.io/api v0.37.2
replace example.test/a v1.0.0 => example.test/fork v1.1.0
`, kubernetesBuild("v1.37.2").goMod(mod))
}

func TestTheErrorOfAFailedCommandCarriesTheEndOfItsOutput(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	err := command{log: log, argv: []string{"seq", "1", "40000", "x"}}.run(context.Background())
	require.ErrorContains(t, err, log)
	require.ErrorContains(t, err, "seq: ")

	require.NoError(t, command{log: log, argv: []string{"seq", "1", "40000"}}.run(context.Background()))
	written, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(written), "\n40000\n"))
}

func TestOnlyTheEndOfLongOutputIsKept(t *testing.T) {
	var tail tailWriter
	for i := range 40000 {
		_, err := fmt.Fprintln(&tail, i)
		require.NoError(t, err)
	}
	lines := strings.Split(tail.String(), "\n")
	assert.Len(t, lines, tailLines)
	assert.Equal(t, "39999", lines[len(lines)-1])
	assert.Less(t, len(tail.buf), 40<<10)
}

func TestAVersionMustBeSaidAsAWord(t *testing.T) {
	ctx := context.Background()
	require.NoError(t, checkSays(ctx, []string{"echo", "Kubernetes v1.37.2"}, "v1.37.2"))
	require.NoError(t, checkSays(ctx, []string{"echo", `kubeadm version: &version.Info{Major:"1", GitVersion:"v1.37.2"}`}, "v1.37.2"))
	require.ErrorContains(t, checkSays(ctx, []string{"echo", "Kubernetes v1.37.20"}, "v1.37.2"), "wanted v1.37.2")
}
