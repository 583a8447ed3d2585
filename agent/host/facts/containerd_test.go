package facts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// As containerd 1.7 writes it.
const dump17 = `disabled_plugins = []
imports = ["/etc/containerd/config.toml"]
oom_score = 0
plugin_dir = ""
version = 2

[plugins]

  [plugins."io.containerd.grpc.v1.cri"]
    disable_cgroup = false
    sandbox_image = "registry.k8s.io/pause:3.9"
    systemd_cgroup = false

    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      snapshotter = "overlayfs"

      [plugins."io.containerd.grpc.v1.cri".containerd.default_runtime]
        runtime_engine = ""
        runtime_type = ""

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]

        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"

          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
            CriuPath = ""
            SystemdCgroup = true

    [plugins."io.containerd.grpc.v1.cri".registry]

      [plugins."io.containerd.grpc.v1.cri".registry.configs]

        [plugins."io.containerd.grpc.v1.cri".registry.configs."corp:5000".auth]
          password = "s3cret"

      [plugins."io.containerd.grpc.v1.cri".registry.mirrors]

        [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
          endpoint = ["https://mirror.corp"]
`

func TestTheSettingsThatNotEveryContainerdTakesAreFound(t *testing.T) {
	const cri = `plugins."io.containerd.grpc.v1.cri".`
	assert.Equal(t, map[string]string{
		cri + "containerd.snapshotter":                "overlayfs",
		cri + "containerd.runtimes.runc.runtime_type": "io.containerd.runc.v2",
		cri + `registry.configs."corp:5000".auth`:     "",
		cri + `registry.mirrors."docker.io"`:          "",
	}, settingsIn(dump17), "defaults, empty tables and passwords are left where they are")
	assert.Equal(t, map[string]string{`plugins."io.containerd.cri.v1.images".snapshotter`: "aufs", "plugin_dir": "/opt/plugins"},
		settingsIn("version = 3\nplugin_dir = '/opt/plugins'\n[plugins]\n  [plugins.'io.containerd.cri.v1.images']\n    snapshotter = 'aufs'\n"))
}

func TestTheVersionIsThatOfTheFile(t *testing.T) {
	for content, want := range map[string]int{
		"version = 2\n[plugins]\n":               2,
		"# version = 2\nversion=3\n":             3,
		"  version   = 4 # newest\n":             4,
		"[plugins]\nversion = 2\n":               0,
		"root = \"/x\"\n":                        0,
		"":                                       0,
		"version = 99999999999999999999999999\n": 0,
	} {
		assert.Equal(t, want, configVersionIn(content), content)
	}
}

func TestTheConfigurationIsTheOneThatTheDaemonWasStartedWith(t *testing.T) {
	assert.Equal(t, "/etc/containerd/config.toml", configPathIn(nil))
	assert.Equal(t, "/opt/c.toml", configPathIn([]string{"--log-level", "debug", "--config=/opt/c.toml"}))
	assert.Equal(t, "/opt/c.toml", configPathIn([]string{"-c", "/opt/c.toml"}))
}

// program is a runtime's program that prints something, or fails.
type program struct {
	output string
	err    error
	asked  []string
}

func (p *program) Run(_ context.Context, c command.Command) (command.Result, error) {
	p.asked = c.Argv
	return command.Result{Stdout: p.output}, p.err
}

func TestAConfigurationThatCannotBeAskedForIsNoEmptyOne(t *testing.T) {
	p := New(tree(t, map[string]string{"etc/containerd/config.toml": "version = 3\n"}), units{})
	runner := &program{output: dump17}
	p.Runner = runner
	r := &upgrade.RuntimeFacts{Name: "containerd"}
	require.NoError(t, gather(p).containerdConfig(t.Context(), "/usr/bin/containerd", 0, r))
	require.NotNil(t, r.Configuration)
	assert.Equal(t, 3, r.Configuration.Version)
	assert.Equal(t, "registry.k8s.io/pause:3.9", r.SandboxImage)
	assert.Equal(t, []string{"/usr/bin/containerd", "--config", "/etc/containerd/config.toml", "config", "dump"}, runner.asked)

	runner.err = errors.New("failed to load TOML: no such file")
	r = &upgrade.RuntimeFacts{Name: "containerd"}
	require.ErrorContains(t, gather(p).containerdConfig(t.Context(), "/usr/bin/containerd", 0, r), "failed to load TOML")
	assert.Nil(t, r.Configuration)

	crio := &upgrade.RuntimeFacts{Name: "cri-o"}
	require.NoError(t, gather(p).containerdConfig(t.Context(), "/usr/bin/crio", 0, crio), "it has no such program")
}

func TestTheVersionOfTheCgroupsIsWhatTheKubeletGoesBy(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int
	}{
		"unified": {map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory"}, 2},
		"legacy":  {map[string]string{"sys/fs/cgroup/memory/tasks": ""}, 1},
		"hybrid":  {map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": "", "sys/fs/cgroup/memory/tasks": ""}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := gather(New(tree(t, tc.files), units{}))
			require.NoError(t, g.cgroups())
			assert.Equal(t, tc.want, g.facts.OS.CgroupVersion)
		})
	}
	g := gather(New(t.TempDir(), units{}))
	require.Error(t, g.cgroups())
	assert.Zero(t, g.facts.OS.CgroupVersion)
}

func TestARebootManagerThatRunsAsAPodIsNamed(t *testing.T) {
	g := gather(New("/", units{known: map[string]systemd.Status{}}))
	g.client = daemon{}
	g.containers = append(g.containers, daemonContainers("kured", "kube-system")...)
	require.NoError(t, g.conflicts(t.Context()))
	assert.Equal(t, []upgrade.ConflictFacts{{Name: "kured", Detail: "a container of namespace kube-system"}}, g.facts.Conflicts)
}

func TestTheKubeletsOwnDirectoryOfManifestsIsRead(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: kube-system}\n"
	g := gather(New(tree(t, map[string]string{"opt/pods/a.yaml": pod, "opt/pods/a.yaml.bak": pod, "etc/kubernetes/manifests/b.yaml": pod}), units{}))
	g.facts.Kubelet = &upgrade.ComponentFacts{Configuration: map[string]any{"staticPodPath": "/opt/pods"}}
	require.NoError(t, g.staticPods(t.Context()))
	var paths []string
	for _, p := range g.facts.StaticPods {
		paths = append(paths, p.Path)
		assert.Equal(t, "proxy", p.Name)
	}
	assert.Equal(t, []string{"/opt/pods/a.yaml", "/opt/pods/a.yaml.bak"}, paths)

	g = gather(New(tree(t, map[string]string{"etc/kubernetes/manifests": "a file"}), units{}))
	require.Error(t, g.staticPods(t.Context()))
	_, err := os.Stat(filepath.Join(g.Root, "etc/kubernetes/manifests"))
	require.NoError(t, err)
}
