package rpm

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// dnf runs the real dnf in the root, with its plugin for version locks, and returns what it says.
func (h *host) dnf(args ...string) string {
	h.t.Helper()
	need(h.t, "dnf")
	const plugins = "/usr/lib/python3/dist-packages/dnf-plugins"
	if _, err := os.Stat(filepath.Join(plugins, "versionlock.py")); err != nil {
		need(h.t, "dnf-plugins-core")
	}
	conf := h.path("etc/dnf/dnf.conf")
	if _, err := os.Stat(conf); err != nil {
		h.write("etc/dnf/dnf.conf", "[main]\ngpgcheck=1\n")
	}
	h.write("etc/dnf/plugins/versionlock.conf", "[main]\nenabled=1\nlocklist="+h.path(lockListFile)+"\n")
	defer h.write("etc/dnf/plugins/versionlock.conf", "[main]\nenabled=1\nlocklist="+lockListFile+"\n") // as the host has it
	if _, err := os.Stat(h.path(lockListFile)); err != nil {
		h.write(lockListFile, "")
	}
	argv := append(append([]string{"dnf"}, args...),
		"--installroot="+h.Root, "--config="+conf, "--releasever=9", "-y", "--setopt=pluginconfpath="+h.path("etc/dnf/plugins"),
		"--setopt=pluginpath="+plugins, "--setopt=reposdir="+h.path(reposDir), "--setopt=cachedir="+h.path("var/cache/dnf"),
	)
	// Debian's librpm has its database elsewhere.
	home := h.t.TempDir()
	require.NoError(h.t, os.WriteFile(filepath.Join(home, ".rpmmacros"), []byte("%_dbpath /var/lib/rpm\n"), 0o644))
	result, err := command.Exec{}.Run(h.t.Context(), command.Command{Argv: argv, Env: []string{"HOME=" + home}})
	if err != nil {
		return result.Output() + "\n" + err.Error()
	}
	return result.Output()
}

func TestDnfAgreesWithWhatWasInstalled(t *testing.T) {
	h, changes := staged(t, kubelet("1-1"), kubelet("2-1"))
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Contains(t, h.dnf("list", "--installed"), "2-1")
	assert.NotContains(t, h.dnf("check"), "kubelet")
}

// B14: a hold that Refit sets is one that dnf keeps to, and one that is taken off is none.
func TestAHoldIsOneToDnfToo(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	h.installs(kubelet("1.36.3-1"))
	h.configure(r.uri("v1.37"), "")
	h.write(lockListFile, "# kept\nbash-0:5.1-1.*\n")
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet", "absent"}, true))
	assert.Equal(t, "# kept\nbash-0:5.1-1.*\nkubelet-0:1.36.3-1.*\n", h.read(lockListFile))
	assert.NotContains(t, h.dnf("check-update"), "1.37.2")
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, holds, "bash is not installed")
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false))
	assert.Equal(t, "# kept\nbash-0:5.1-1.*\n", h.read(lockListFile))
	assert.Contains(t, h.dnf("check-update"), "1.37.2", "the lock is what kept it from dnf")
}

func TestALockOfDnfIsAHoldToRefit(t *testing.T) {
	h := newHost(t)
	h.installs(kubelet("1.36.3-1"), rpmfile{name: "containerd.io", version: "1:1.7.2-1"}, rpmfile{name: "python3-dnf", version: "1-1"})
	h.dnf("versionlock", "add", "kubelet")
	h.dnf("versionlock", "add", "containerd.io")
	text := h.read(lockListFile)
	require.Contains(t, text, "kubelet-0:1.36.3-1")
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"containerd.io", "kubelet"}, holds)
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false))
	assert.NotContains(t, h.read(lockListFile), "kubelet-")
}

// B15: an exclude is the host owner's hold; it is told, and never edited.
func TestAnExcludeIsAHoldThatStays(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	h.installs(kubelet("1.36.3-1"), rpmfile{name: "telnet", version: "1-1"})
	h.configure(r.uri("v1.37"), "exclude=kubelet kubeadm\n")
	h.write("etc/dnf/dnf.conf", "[main]\nexcludepkgs=tel*\n")
	before := h.read(reposDir + "/kubernetes.repo")
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet", "telnet"}, holds)
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false))
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, true))
	assert.Equal(t, before, h.read(reposDir+"/kubernetes.repo"))
	assert.NoFileExists(t, h.path(lockListFile), "what is held already gets no lock besides")
	assert.NotContains(t, h.dnf("check-update"), "1.37.2")
}

func TestTheNameIsFoundInEveryFormOfALock(t *testing.T) {
	for line, want := range map[string]string{
		"kubelet":                       "kubelet",
		"kubelet-0:1.30.4-150500.1.1.*": "kubelet",
		"kubelet-1.30.4-1.x86_64":       "kubelet",
		"0:kubelet-1.30.4-1.*":          "kubelet",
		"kubelet-1.30.*":                "kubelet",
		"cri-tools-0:1.30.1-1.*":        "cri-tools",
		"python3-dnf-plugin":            "python3-dnf-plugin",
		"kernel-*":                      "kernel",
		"!kubelet-0:1.30.5-1.*":         "",
		"# Added lock on Monday":        "",
	} {
		assert.Equal(t, want, lockedName(line), line)
	}
}

func TestTheLocksOfDnf5AreReadAndWritten(t *testing.T) {
	l := tomlLocks{}
	text := "version = \"1.0\"\n\n[[packages]]\nname = \"bash\"\ncomment = \"mine\"\n[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"<\"\nvalue = \"5.2\"\n"
	locked := l.with(text, []header{{"kubelet", "x86_64", "1.37.2-1"}})
	assert.Equal(t, []string{"bash", "kubelet"}, l.names(locked))
	assert.Contains(t, locked, "name = \"kubelet\"\n")
	assert.Contains(t, locked, "value = \"0:1.37.2-1\"\n")
	assert.Equal(t, text, l.without(locked, []string{"kubelet"})[:len(text)])
	assert.Equal(t, strings.TrimSpace(text), strings.TrimSpace(l.without(locked, []string{"kubelet"})))
	assert.True(t, strings.HasPrefix(l.with("", []header{{"a", "noarch", "1-1"}}), "version = \"1.0\"\n"))

	h := bare(t)
	h.write("usr/bin/dnf5", "")
	require.NoError(t, os.Symlink("dnf5", h.path("usr/bin/dnf")))
	assert.IsType(t, tomlLocks{}, dnfLocks(h.RPM))
	h = bare(t)
	h.write("usr/bin/dnf-3", "")
	require.NoError(t, os.Symlink("dnf-3", h.path("usr/bin/dnf")))
	assert.IsType(t, listLocks{}, dnfLocks(h.RPM))
}

// B21: a version that another tool brought is told with its command, where dnf's logs have it.
func TestWhoBroughtAVersionIsToldFromDnfsLogs(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("1.37.2-1"))
	h.installs(kubelet("1.36.3-1"))
	h.configure(r.uri("v1.37"), "")
	tool(t, h.rpm("rpmkeys", "--import", h.path(keyringDir, "kubernetes.asc"))...)
	out := h.dnf("upgrade")
	require.Equal(t, []string{"kubelet 1.37.2-1 installed"}, h.versions("kubelet"), out)
	by, err := h.ChangedBy([]upgrade.InstalledPackage{{Name: "kubelet", Version: "1.37.2-1"}, {Name: "other", Version: "1-1"}})
	require.NoError(t, err)
	require.Equal(t, []string{"kubelet"}, slices.Collect(maps.Keys(by)))
	assert.Contains(t, by["kubelet"], "upgrade")
	assert.Contains(t, by["kubelet"], "by the host's clock")
}
