package facts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	kubeadmUnit = "usr/lib/systemd/system/kubelet.service"
	kubeadmDrop = "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
	// what kubeadm's packages ship
	kubeadmDropText = `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`
)

func TestTheArgumentsOfTheKubeletsUnitAreFound(t *testing.T) {
	usual := map[string]string{kubeadmUnit: "[Service]\nExecStart=/usr/bin/kubelet\n", kubeadmDrop: kubeadmDropText}
	with := func(path, content string) map[string]string {
		out := map[string]string{path: content}
		for p, text := range usual {
			out[p] = text
		}
		return out
	}
	const mine = "etc/systemd/system/kubelet.service.d/20-mine.conf"
	for name, tc := range map[string]struct {
		files map[string]string
		want  *upgrade.ConfigArgsFacts
	}{
		"kubeadm's own":        {usual, &upgrade.ConfigArgsFacts{Value: "--config=/var/lib/kubelet/config.yaml"}},
		"Refit's is left out":  {with(upgrade.KubeletUnitDropInPath[1:], upgrade.UnitDropIn("--config=/var/lib/kubelet/config.yaml")), &upgrade.ConfigArgsFacts{Value: "--config=/var/lib/kubelet/config.yaml"}},
		"an owner's over it":   {with(mine, "[Service]\nEnvironment=A=b 'KUBELET_CONFIG_ARGS=--config=/etc/k.yaml --v=3' C=d\n"), &upgrade.ConfigArgsFacts{Value: "--config=/etc/k.yaml --v=3"}},
		"an owner's emptied":   {with(mine, "[Service]\nEnvironment=\n"), &upgrade.ConfigArgsFacts{}},
		"one on several lines": {with(mine, "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/etc/k.yaml \\\n  --v=3\"\n"), &upgrade.ConfigArgsFacts{Value: "--config=/etc/k.yaml    --v=3"}},
		"an environment file":  {with("etc/default/kubelet", "KUBELET_EXTRA_ARGS=\nKUBELET_CONFIG_ARGS=\"--config=/etc/k.yaml\"\n"), &upgrade.ConfigArgsFacts{Value: "--config=/etc/k.yaml", EnvironmentFile: "/etc/default/kubelet"}},
		"another way to start": {with(mine, "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n"), nil},
		"no unit at all":       {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := gather(New(tree(t, tc.files), units{}))
			got, err := g.configArgs([]string{"/" + kubeadmUnit, "/" + kubeadmDrop, "/" + mine, upgrade.KubeletUnitDropInPath})
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestTheConfigurationIsMergedAsTheKubeletMergesIt(t *testing.T) {
	dir := upgrade.KubeletDropInDir[1:]
	root := tree(t, map[string]string{
		"var/lib/kubelet/config.yaml": "maxPods: 110\nevictionHard: {nodefs.available: 10%}\nclusterDNS: [10.96.0.10]\n",
		dir + "/10-mine.conf":         "maxPods: 50\nclusterDNS: [10.0.0.1]\nstaticPodURLHeader: {Authorization: [secret]}\n",
		dir + "/20-sub/a.conf":        "podPidsLimit: 7\n",
		dir + "/30-not.yaml":          "maxPods: 1\n",
		dir + "/90-refit.conf":        "maxPods: 200\nevictionHard: {memory.available: 200Mi}\n",
	})
	g := gather(New(root, units{}))
	k := &upgrade.ComponentFacts{Flags: []string{"--config-dir=" + upgrade.KubeletDropInDir}}
	require.NoError(t, g.kubeletConfiguration(k))
	assert.Equal(t, map[string]any{
		"maxPods": 200.0, "podPidsLimit": 7.0, "clusterDNS": []any{"10.0.0.1"},
		"evictionHard": map[string]any{"nodefs.available": "10%", "memory.available": "200Mi"},
	}, k.Configuration)
	var paths []string
	for _, d := range k.DropIns {
		paths = append(paths, d.Path)
	}
	assert.Equal(t, []string{"/" + dir + "/10-mine.conf", "/" + dir + "/20-sub/a.conf", upgrade.KubeletDropInPath}, paths)

	k = &upgrade.ComponentFacts{Flags: []string{"--v=2"}}
	require.NoError(t, g.kubeletConfiguration(k))
	assert.EqualValues(t, 110, k.Configuration["maxPods"], "a process that was told of no directory has read none")
	assert.Len(t, k.DropIns, 3, "what is there is told all the same")

	k = &upgrade.ComponentFacts{ConfigArgs: &upgrade.ConfigArgsFacts{Value: "--config-dir " + upgrade.KubeletDropInDir + "/"}}
	require.NoError(t, g.kubeletConfiguration(k))
	assert.EqualValues(t, 200, k.Configuration["maxPods"], "where none runs, what it would read counts")
}

func TestABrokenDropInIsAFaultUnlessItIsRefits(t *testing.T) {
	root := tree(t, map[string]string{upgrade.KubeletDropInPath[1:]: "a: [\n"})
	k := &upgrade.ComponentFacts{Flags: []string{"--config-dir=" + upgrade.KubeletDropInDir}}
	require.NoError(t, gather(New(root, units{})).kubeletConfiguration(k))
	require.Len(t, k.DropIns, 1)
	assert.NotEmpty(t, k.DropIns[0].Broken, "it is written anew")

	require.NoError(t, os.WriteFile(filepath.Join(root, upgrade.KubeletDropInDir, "10-mine.conf"), []byte("b: ]\n"), 0o644))
	require.ErrorContains(t, gather(New(root, units{})).kubeletConfiguration(k), "10-mine.conf")
}

func TestTheFilesOfRefitAreToldWithDigestAndMode(t *testing.T) {
	root := tree(t, map[string]string{upgrade.KubeletDropInPath[1:]: "a: b\n"})
	g := gather(New(root, units{}))
	require.NoError(t, g.managedFiles(t.Context()))
	require.Len(t, g.facts.ManagedFiles, 1)
	m := g.facts.ManagedFiles[0]
	assert.Equal(t, upgrade.KubeletDropInPath, m.Path)
	assert.Regexp(t, "^[0-9a-f]{64}$", m.SHA256)
	assert.Equal(t, uint32(0o644), m.Mode)
	assert.False(t, m.ModTime.IsZero())
}
