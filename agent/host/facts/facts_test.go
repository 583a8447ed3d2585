package facts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/osrelease"
	hostruntime "github.com/refit-dev/refit/agent/host/runtime"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// units is a service manager with some units, or one that does not answer.
type units struct {
	known map[string]systemd.Status
	err   error
}

func (u units) Status(_ context.Context, unit string) (systemd.Status, error) {
	if status, ok := u.known[unit]; ok || u.err != nil {
		return status, u.err
	}
	return systemd.Status{Unit: unit, LoadState: "not-found", ActiveState: "inactive"}, nil
}

// daemon is a container runtime with set answers.
type daemon struct {
	name, version string
	err           error
	info          hostruntime.Info
	containers    []hostruntime.Container
}

func (d daemon) Version(context.Context) (string, string, error) { return d.name, d.version, d.err }
func (d daemon) Info(context.Context) (hostruntime.Info, error)  { return d.info, d.err }
func (d daemon) Sandboxes(context.Context) ([]string, error)     { return []string{"a", "b"}, d.err }
func (d daemon) Containers(context.Context) ([]hostruntime.Container, error) {
	return d.containers, d.err
}

// tree is a host's files.
func tree(t *testing.T, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range content {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

func gather(p *Prober) *gathering { return &gathering{Prober: p} }

func fields(problems []upgrade.Problem) []string {
	var names []string
	for _, p := range problems {
		names = append(names, p.Field)
	}
	return names
}

func TestEveryProbeStandsAlone(t *testing.T) {
	root := tree(t, map[string]string{
		"etc/machine-id": "0123456789abcdef\n", "etc/os-release": "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian 12\"\n",
		"var/lib/dpkg/status": "", "etc/refit/hold": "backup runs until noon\n",
		"etc/kubernetes/kubelet.conf": "not: [a kubeconfig",
	})
	p := New(root, units{err: systemd.ErrUnavailable})
	facts, err := p.Facts(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, upgrade.FactsAPIVersion, facts.APIVersion)
	assert.Equal(t, "0123456789abcdef", facts.Host.MachineID)
	assert.Equal(t, "apt", facts.OS.Family)
	assert.Equal(t, runtime.GOARCH, facts.OS.Architecture)
	assert.NotEmpty(t, facts.OS.Kernel)
	assert.NotEmpty(t, facts.Mounts)
	assert.Nil(t, facts.Kubelet)
	require.NotNil(t, facts.Hold)
	assert.Equal(t, "backup runs until noon", facts.Hold.Message)
	assert.Subset(t, fields(facts.Problems), []string{"kubelet", "node", "host.bootID", "conflictingManagers"})
}

func TestALockThatMayNotBeLookedAtIsAProblemOfTheLockAlone(t *testing.T) {
	root := tree(t, map[string]string{"etc/os-release": "ID=debian\n", "var/lib/dpkg/status": ""})
	require.NoError(t, os.Symlink("lock-frontend", filepath.Join(root, "var/lib/dpkg/lock-frontend"))) // cannot be opened, by root either
	facts, err := New(root, units{}).Facts(t.Context(), nil)
	require.NoError(t, err)
	assert.Contains(t, fields(facts.Problems), "packages.lock")
	assert.NotContains(t, fields(facts.Problems), "packages", "a plan is refused for those")
}

func TestOnThisMachineThereIsNoProbeThatStopsTheRest(t *testing.T) {
	facts, err := New("/", systemd.New()).Facts(t.Context(), []string{"dpkg"})
	require.NoError(t, err)
	assert.NotEmpty(t, facts.Host.BootID)
	assert.NotEmpty(t, facts.OS.ID)
	if facts.OS.Family == "apt" {
		require.NotEmpty(t, facts.Packages.Installed)
		assert.Contains(t, installedNames(facts), "dpkg")
	}
}

func installedNames(facts upgrade.Facts) []string {
	var names []string
	for _, p := range facts.Packages.Installed {
		names = append(names, p.Name)
	}
	return names
}

func TestAProbeThatPanicsIsAProblem(t *testing.T) {
	g := gather(New("/", units{}))
	err := g.ask(t.Context(), probe{"x", func(*gathering, context.Context) error { panic("nobody thought of that") }})
	require.ErrorContains(t, err, "nobody thought of that")
}

func TestGatheringEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := New("/", units{}).Facts(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheFamilyComesFromIDAndIDLike(t *testing.T) {
	for name, tc := range map[string]struct{ path, content, family, id string }{
		"quoted, with several like": {"etc/os-release", "NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf", "rocky"},
		"unquoted":                  {"etc/os-release", "ID=ubuntu\nID_LIKE=debian\n", "apt", "ubuntu"},
		"single quotes":             {"etc/os-release", "ID='almalinux'\n", "dnf", "almalinux"},
		"no ID_LIKE":                {"etc/os-release", "ID=debian\n", "apt", "debian"},
		"only in /usr/lib":          {"usr/lib/os-release", "ID=debian\n", "apt", "debian"},
		"derived":                   {"etc/os-release", "ID=corpos\nID_LIKE=\"ubuntu debian\"\n", "apt", "corpos"},
		"suse":                      {"etc/os-release", "ID=\"sles\"\nID_LIKE=\"suse\"\n", "zypper", "sles"},
		"a name decides nothing":    {"etc/os-release", "NAME=\"Fedora-like Thing\"\nID=thing\n#ID=debian\n", "", "thing"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gather(New(tree(t, map[string]string{tc.path: tc.content}), units{}))
			require.NoError(t, g.os(t.Context()))
			assert.Equal(t, tc.family, g.facts.OS.Family)
			assert.Equal(t, tc.id, g.facts.OS.ID)
		})
	}
	g := gather(New(t.TempDir(), units{}))
	require.Error(t, g.os(t.Context()))
}

func TestTheRuntimesVersionIsFoundInWhatItsProgramPrints(t *testing.T) {
	for output, want := range map[string]string{
		"containerd github.com/containerd/containerd v1.7.2 0cae528dd6cb557f7201036e9f43420650207b58":  "v1.7.2",
		"containerd containerd.io v1.7.28 b98a3aace656320842a23f4a392a33f46af97866":                    "v1.7.28",
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1":                       "1.6.20~ds1",
		"containerd github.com/containerd/containerd/v2 v2.0.1 88aa2f531d6c2922003cc7929e51daf1c14caa": "v2.0.1",
		"crio version 1.33.0\nGitCommit: abc":                                                          "1.33.0",
	} {
		got, err := programVersion(output)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := programVersion("containerd")
	require.Error(t, err)
}

func TestTheSandboxImageIsFoundInBothFormsOfConfiguration(t *testing.T) {
	assert.Equal(t, "pause:3.10", sandboxImageIn("version = 3\n[plugins]\n  [plugins.'io.containerd.cri.v1.images']\n    snapshotter = 'overlayfs'\n    [plugins.'io.containerd.cri.v1.images'.pinned_images]\n      sandbox = 'pause:3.10'\n"))
	assert.Equal(t, "pause:3.9", sandboxImageIn("version = 2\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    sandbox_image = \"pause:3.9\"\n"))
	assert.Empty(t, sandboxImageIn("[other]\n  sandbox = 'x'\n"))
}

func TestFlagsKeepSecretsOnTheHost(t *testing.T) {
	assert.Equal(t,
		[]string{"--v=2", "--bootstrap-token=REDACTED", "--token", "REDACTED", "--kubeconfig=/etc/k", "--tls-private-key-file=/x", "--password-file=/y"},
		redact([]string{"--v=2", "--bootstrap-token=abc.def", "--token", "abc", "--kubeconfig=/etc/k", "--tls-private-key-file=/x", "--password-file=/y"}))
}

func TestFlagSourcesNameFileAndLine(t *testing.T) {
	root := tree(t, map[string]string{
		"var/lib/kubelet/kubeadm-flags.env":                    "KUBELET_KUBEADM_ARGS=\"--container-runtime=remote --pod-infra-container-image=k8s.gcr.io/pause:3.4.1\"\n",
		"etc/default/kubelet":                                  "# --not-this\nKUBELET_EXTRA_ARGS=--node-ip=192.0.2.7\n",
		"etc/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"\nExecStart=\n",
		"lib/systemd/system/kubelet.service":                   "[Service]\nExecStart=/usr/bin/kubelet\n",
	})
	g := gather(New(root, units{}))
	sources, err := g.flagSources([]string{"/lib/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"})
	require.NoError(t, err)
	require.Len(t, sources, 3)
	assert.Contains(t, sources["/var/lib/kubelet/kubeadm-flags.env"], "--container-runtime=remote")
	assert.Equal(t, "KUBELET_EXTRA_ARGS=--node-ip=192.0.2.7", sources["/etc/default/kubelet"])
}

func TestTheRuntimeThatAnswersIsTheOneTheKubeletUses(t *testing.T) {
	asked := ""
	p := New(tree(t, map[string]string{"var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: /run/containerd/containerd.sock\n"}), units{})
	p.Runtime = func(endpoint string) Runtime {
		asked = endpoint
		return daemon{name: "containerd", version: "v1.7.23", info: hostruntime.Info{Ready: true, CgroupDriver: "systemd", SandboxImage: "pause:3.10"}}
	}
	g := gather(p)
	require.NoError(t, g.runtime(t.Context()))
	assert.Equal(t, "unix:///run/containerd/containerd.sock", asked)
	r := g.facts.Runtime
	assert.Equal(t, "v1.7.23", r.Running)
	assert.Equal(t, 2, r.Sandboxes)
	assert.Equal(t, "systemd", r.CgroupDriver)

	g = gather(p)
	g.facts.Kubelet = &upgrade.ComponentFacts{Flags: []string{"--container-runtime-endpoint", "/var/run/crio/crio.sock"}}
	_ = g.runtime(t.Context())
	assert.Equal(t, "unix:///var/run/crio/crio.sock", asked, "the flag of the running kubelet wins")
}

func TestARuntimeThatDoesNotAnswerHasNoRunningVersion(t *testing.T) {
	p := New(tree(t, map[string]string{"var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n"}), units{})
	p.Runtime = func(string) Runtime { return daemon{err: errors.New("connection refused")} }
	g := gather(p)
	require.NoError(t, g.runtime(t.Context()))
	assert.Empty(t, g.facts.Runtime.Running)
	assert.Equal(t, "containerd", g.facts.Runtime.Name)
	assert.Contains(t, fields(g.facts.Problems), "containerRuntime.running")
}

// Down is known of a unit without a process alone: one that hangs may run something else than what is installed.
func TestARuntimeIsDownWhereItsUnitHasNoProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		status systemd.Status
		err    error
		want   bool
	}{
		"it failed":                   {systemd.Status{LoadState: "loaded", ActiveState: "failed"}, errors.New("connection refused"), true},
		"it waits for its restart":    {systemd.Status{LoadState: "loaded", ActiveState: "activating", SubState: "auto-restart"}, errors.New("no such file"), true},
		"it runs and does not answer": {systemd.Status{LoadState: "loaded", ActiveState: "active", MainPID: 1 << 30}, errors.New("deadline exceeded"), false},
		"it starts":                   {systemd.Status{LoadState: "loaded", ActiveState: "activating", MainPID: 1 << 30}, errors.New("connection refused"), false},
		"there is no unit":            {systemd.Status{LoadState: "not-found", ActiveState: "inactive"}, errors.New("connection refused"), false},
		"it answers all the same":     {systemd.Status{LoadState: "loaded", ActiveState: "inactive"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(tree(t, map[string]string{"var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n"}), units{known: map[string]systemd.Status{"containerd.service": tc.status}})
			d := daemon{err: tc.err}
			if tc.err == nil {
				d = daemon{name: "containerd", version: "v1.7.28"}
			}
			p.Runtime, p.Runner = func(string) Runtime { return d }, &program{}
			g := gather(p)
			_ = g.runtime(t.Context())
			require.NotNil(t, g.facts.Runtime)
			assert.Equal(t, tc.want, g.facts.Runtime.Stopped)
		})
	}
}

func TestComponentsGoByTheImageThatRuns(t *testing.T) {
	pod := func(name, image string) string {
		return "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: " + name + "\n    image: " + image + "\n"
	}
	p := New(tree(t, map[string]string{
		"etc/kubernetes/manifests/kube-scheduler.yaml":          pod("kube-scheduler", "registry.k8s.io/kube-scheduler:v1.37.2"),
		"etc/kubernetes/manifests/kube-controller-manager.yaml": pod("kube-controller-manager", "registry.k8s.io/kube-controller-manager:v1.37.2"),
		"etc/kubernetes/manifests/etcd.yaml":                    pod("etcd", "registry.k8s.io/etcd:3.6.4-0@sha256:abc"),
	}), units{})
	g := gather(p)
	g.client = daemon{containers: []hostruntime.Container{
		{Name: "kube-scheduler", Namespace: "kube-system", Image: "registry.k8s.io/kube-scheduler:v1.36.3", CreatedAt: 1},
		{Name: "kube-scheduler", Namespace: "kube-system", Image: "registry.k8s.io/kube-scheduler:v1.37.2", CreatedAt: 2},
		{Name: "kube-controller-manager", Namespace: "kube-system", Image: "registry.k8s.io/kube-controller-manager:v1.36.3", CreatedAt: 1},
		{Name: "kube-proxy", Namespace: "kube-system", Image: "mirror.corp:5000/kube-proxy:v1.36.3", CreatedAt: 1},
		{Name: "etcd", Namespace: "tenant", Image: "etcd:3.5.0", CreatedAt: 9},
	}}
	require.NoError(t, g.listContainers(t.Context()))
	require.NoError(t, g.controlPlane(t.Context()))
	require.NoError(t, g.kubeProxy(t.Context()))
	c := g.facts.Control
	require.NotNil(t, c)
	assert.Equal(t, "v1.37.2", c.Scheduler)
	assert.Equal(t, "v1.36.3", c.ControllerManager, "the manifest is newer than what runs")
	assert.Equal(t, "v1.37.2", c.Manifests["kube-controller-manager"])
	assert.Equal(t, "3.6.4-0", c.Manifests["etcd"])
	assert.Empty(t, c.Etcd, "somebody else's etcd is not this host's")
	assert.Equal(t, "v1.36.3", g.facts.KubeProxy)
}

// A manifest of which no version can be read is a manifest all the same, and etcd alone is none.
func TestAnAPIServerCountsByItsFileWhateverIsInIt(t *testing.T) {
	const path = "etc/kubernetes/manifests/kube-apiserver.yaml"
	for name, tc := range map[string]struct {
		files map[string]string
		sign  upgrade.APIServerSign
	}{
		"a container of another name": {map[string]string{path: "apiVersion: v1\nkind: Pod\nmetadata: {name: api}\nspec: {containers: [{name: api, image: x}]}\n"}, upgrade.APIServerOnHost},
		"a file that is no YAML":      {map[string]string{path: "{"}, upgrade.APIServerOnHost},
		"etcd alone":                  {map[string]string{"etc/kubernetes/manifests/etcd.yaml": "kind: Pod\nspec: {containers: [{name: etcd, image: \"registry.k8s.io/etcd:3.6.4-0\"}]}\n"}, upgrade.NoAPIServer},
		"none":                        {nil, upgrade.NoAPIServer},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, tc.files)
			g := gather(New(root, units{}))
			g.problem("controlPlane", g.controlPlane(t.Context()))
			assert.Equal(t, tc.sign, g.facts.APIServerSign(), "%+v", g.facts)
		})
	}
}

func TestAnOwnersHoldThatCannotBeReadStillHolds(t *testing.T) {
	g := gather(New(t.TempDir(), units{}))
	require.NoError(t, g.hold(t.Context()))
	assert.Nil(t, g.facts.Hold)
	require.NoError(t, os.MkdirAll(g.path(HoldPath), 0o755)) // a directory of that name
	require.Error(t, g.hold(t.Context()))
	assert.NotNil(t, g.facts.Hold)
}

func TestOtherUpdatersAreNamed(t *testing.T) {
	found := unattendedIn("APT::Periodic::Update-Package-Lists \"1\";\nAPT::Periodic::Unattended-Upgrade \"1\";\nUnattended-Upgrade::Automatic-Reboot \"true\";\n")
	assert.Len(t, found, 2)
	assert.Empty(t, unattendedIn("APT::Periodic::Unattended-Upgrade \"0\";\nUnattended-Upgrade::Automatic-Reboot \"false\";\n"))

	g := gather(New("/", units{known: map[string]systemd.Status{"locksmithd.service": {ActiveState: "active"}}}))
	require.NoError(t, g.conflicts(t.Context()))
	assert.Equal(t, []upgrade.ConflictFacts{{Name: "locksmithd", Detail: "locksmithd.service is active"}}, g.facts.Conflicts)
}

func TestARebootIsWantedForANewerKernelOfTheSameFlavour(t *testing.T) {
	if command.Find("dpkg") == "" {
		t.Skip("needs dpkg to compare versions")
	}
	for name, tc := range map[string]struct {
		running   string
		installed []string
		want      bool
	}{
		"the newest runs, as numbers":       {"6.8.0-100-generic", []string{"6.8.0-31-generic", "6.8.0-99-generic", "6.8.0-100-generic"}, false},
		"a newer one waits":                 {"6.8.0-99-generic", []string{"6.8.0-99-generic", "6.8.0-100-generic"}, true},
		"a rescue image counts for nothing": {"4.18.0-348.el8", []string{"0-rescue-c13", "4.18.0-348.el8"}, false},
		"another flavour":                   {"6.1.0-30-amd64", []string{"6.1.0-30-amd64", "6.1.0-31-cloud-amd64"}, false},
		"a kernel of somebody else":         {"6.18.0-vm", []string{"6.1.0-30-amd64"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			content := map[string]string{"boot/x": ""}
			for _, release := range tc.installed {
				content["boot/vmlinuz-"+release] = ""
			}
			g := gather(New(tree(t, content), units{}))
			g.facts.OS.Kernel = tc.running
			require.NoError(t, g.reboot(t.Context()))
			assert.Equal(t, tc.want, g.facts.Reboot.Required)
		})
	}
}

func TestOnAnRpmHostKernelsAreComparedAsRpmDoes(t *testing.T) {
	g := gather(New(tree(t, map[string]string{"boot/vmlinuz-5.14.0-9.el9.x86_64": "", "boot/vmlinuz-5.14.0-10.el9.x86_64": ""}), units{}))
	g.facts.OS.Kernel, g.facts.OS.Family = "5.14.0-9.el9.x86_64", "dnf"
	require.NoError(t, g.reboot(t.Context()))
	assert.Equal(t, upgrade.RebootFacts{Required: true, Packages: []string{"kernel-core-5.14.0-10.el9.x86_64"}, Versions: []string{"kernel-core-5.14.0-10.el9.x86_64"}}, g.facts.Reboot)
}

func TestTheSystemDecidesWhoIsAskedForPackages(t *testing.T) {
	root := tree(t, map[string]string{"etc/os-release": "ID=rocky\n"})
	p := New(root, units{})
	p.Manager = func(_ string, release osrelease.Release) PackageManager {
		assert.Equal(t, osrelease.DNF, release.Family)
		return manager{}
	}
	facts, err := p.Facts(t.Context(), []string{"telnet"})
	require.NoError(t, err)
	assert.Equal(t, "dnf", facts.Packages.Manager)
	assert.Equal(t, []upgrade.InstalledPackage{{Name: "telnet", Version: "1-1", ChangedBy: "dnf"}}, facts.Packages.Installed)
	assert.Equal(t, []string{"telnet"}, facts.Packages.Holds)
	assert.Equal(t, []string{"kubelet"}, facts.Packages.Broken)
	assert.Equal(t, []upgrade.SourceFacts{{URI: "https://mirror.corp/"}}, facts.Packages.Sources)

	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/os-release"), []byte("ID=alpine\n"), 0o644))
	facts, err = New(root, units{}).Facts(t.Context(), nil)
	require.NoError(t, err)
	assert.Contains(t, facts.Problems, upgrade.Problem{Field: "packages", Message: "UnsupportedOS: packages of this host are left alone: its package manager is neither apt, dnf nor zypper, as far as os-release tells"})
	assert.NotContains(t, fields(facts.Problems), "packages.sources", "said once")
}

// manager is a package manager that knows one package.
type manager struct{}

func (manager) Query(_ context.Context, names []string) ([]upgrade.InstalledPackage, error) {
	if !slices.Contains(names, "telnet") {
		return nil, nil
	}
	return []upgrade.InstalledPackage{{Name: "telnet", Version: "1-1"}}, nil
}
func (manager) Holds(context.Context) ([]string, error)  { return []string{"telnet"}, nil }
func (manager) Broken(context.Context) ([]string, error) { return []string{"kubelet"}, nil }
func (manager) ChangedBy([]upgrade.InstalledPackage) (map[string]string, error) {
	return map[string]string{"telnet": "dnf"}, nil
}
func (manager) LockHolder() (*upgrade.LockFacts, error) { return nil, nil }
func (manager) Sources(context.Context, []string) ([]upgrade.SourceFacts, error) {
	return []upgrade.SourceFacts{{URI: "https://mirror.corp/"}}, nil
}
func (manager) Indexes(context.Context, []string) ([]upgrade.IndexFacts, error) { return nil, nil }

func TestARebootFileNamesItsPackages(t *testing.T) {
	g := gather(New(tree(t, map[string]string{"run/reboot-required": "", "run/reboot-required.pkgs": "libc6\nlinux-image-x\nlibc6\n"}), units{}))
	require.NoError(t, g.reboot(t.Context()))
	assert.Equal(t, upgrade.RebootFacts{Required: true, Packages: []string{"libc6", "linux-image-x"}, Versions: []string{"libc6", "linux-image-x"}}, g.facts.Reboot)
}

func TestSUSEsOwnFileWantsAReboot(t *testing.T) {
	g := gather(New(tree(t, map[string]string{"run/reboot-needed": ""}), units{}))
	require.NoError(t, g.reboot(t.Context()))
	assert.Equal(t, upgrade.RebootFacts{Required: true}, g.facts.Reboot)
}

func TestNamesAreSortedAndNotRepeated(t *testing.T) {
	g := gather(New("/", units{}))
	g.extra = []string{"openssl", "kubelet"}
	names := strings.Join(g.watched(), " ")
	assert.Equal(t, 1, strings.Count(names, "kubelet"))
	assert.Contains(t, names, "openssl")
}

func daemonContainers(name, namespace string) []hostruntime.Container {
	return []hostruntime.Container{{Name: name, Namespace: namespace, CreatedAt: 1}}
}
