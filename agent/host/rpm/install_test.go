package rpm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func kubelet(version string) rpmfile {
	return rpmfile{name: "kubelet", version: version, files: map[string]string{"usr/bin/kubelet": version}}
}

// staged is a host with the old version, and the change to the new one, staged.
func staged(t *testing.T, old, new rpmfile) (*host, []upgrade.PackageChange) {
	t.Helper()
	h := newHost(t)
	r := newRepository(t, new)
	h.installs(old)
	c, ok := h.candidates(r, new.name)[new.name+" "+new.version]
	require.True(t, ok)
	changes := []upgrade.PackageChange{change(c, old.version)}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	r.Answer(500) // nothing may need the repository from here on
	return h, changes
}

func TestAPackageGoesFromTheSignedMetadataToTheHostAndBack(t *testing.T) {
	h := newHost(t)
	old := kubelet("1.36.3-150500.1.1")
	r := newRepository(t, kubelet("1.37.2-150500.1.1"), kubelet("1.37.1-150500.1.1"), rpmfile{name: "other", version: "1-1"})
	r.publish("v1.36", old)
	h.installs(old)
	h.configure(r.uri("v1.36"), "exclude=kubelet kubeadm kubectl cri-tools kubernetes-cni\n")
	found := h.candidates(r, "kubelet")
	require.Len(t, found, 2)
	c := found["kubelet 1.37.2-150500.1.1"]
	assert.Equal(t, r.uri("v1.37"), c.Source)
	assert.Positive(t, c.InstalledSize)

	changes := []upgrade.PackageChange{change(c, old.version)}
	findings, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	assert.Empty(t, findings, "the version to go back to is in the host's own repository")
	assert.Equal(t, []string{"kubelet 1.36.3-150500.1.1 installed"}, h.versions("kubelet"), "staging changes nothing")

	r.Answer(500) // installing must not need the repository
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, []string{"kubelet 1.37.2-150500.1.1 installed"}, h.versions("kubelet"))
	assert.Equal(t, "1.37.2-150500.1.1", h.read("usr/bin/kubelet"))
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()), "again is fine")

	file, digest, err := h.Find(t.Context(), "kubelet", old.version)
	require.NoError(t, err)
	back := []upgrade.PackageChange{{Name: "kubelet", From: c.Version, To: old.version, File: file, SHA256: digest}}
	require.NoError(t, h.Install(t.Context(), back, h.BackupDir()))
	assert.Equal(t, old.version, h.read("usr/bin/kubelet"))
	assert.Equal(t, []string{"kubelet 1.36.3-150500.1.1 installed"}, h.versions("kubelet"))
}

func TestAVersionWithPlusAndEpochIsFetchedInstalledAndKept(t *testing.T) {
	old := rpmfile{name: "containerd.io", version: "1:1.7.5+k0s.0-1"}
	h := newHost(t)
	r := newRepository(t, rpmfile{name: "containerd.io", version: "1:1.7.6+k0s.0~rc1-1"}, old)
	h.installs(old)
	h.configure(r.uri("v1.37"), "")
	c := h.candidates(r, "containerd.io")["containerd.io 1:1.7.6+k0s.0~rc1-1"]
	changes := []upgrade.PackageChange{change(c, old.version)}
	findings, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	assert.Empty(t, findings)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	_, _, err = h.Find(t.Context(), "containerd.io", old.version)
	require.NoError(t, err)
}

func TestAPackageThatCannotBeKeptIsAWarning(t *testing.T) {
	h := newHost(t)
	h.installs(kubelet("1.36.3-1"))
	r := newRepository(t, kubelet("1.37.2-1"))
	c := h.candidates(r, "kubelet")["kubelet 1.37.2-1"]
	findings, err := h.Stage(t.Context(), []upgrade.PackageChange{change(c, "1.36.3-1")})
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Equal(t, "NoRollbackPackage", findings[0].Reason)
	_, _, err = h.Find(t.Context(), "kubelet", "1.36.3-1")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// B19: the exact transaction is tried before anything is drained, and does what was asked for or nothing.
func TestATransactionThatDoesMoreThanAskedIsRefused(t *testing.T) {
	r := newRepository(t,
		rpmfile{name: "kubelet", version: "2-1", requires: "kubernetes-cni = 0.6.0"},
		rpmfile{name: "kubelet", version: "3-1"},
		rpmfile{name: "kubelet", version: "2.5-1", obsoletes: "bystander < 2"},
		rpmfile{name: "kubernetes-cni", version: "0.7.5-1"})
	h := newHost(t)
	h.installs(kubelet("1-1"), rpmfile{name: "user", version: "1-1", requires: "kubelet < 3"}, rpmfile{name: "bystander", version: "1-1"})
	found := h.candidates(r, "kubelet", "kubernetes-cni")
	for version, want := range map[string]struct{ reason, text string }{
		"2-1":   {"TransactionRefused", "kubernetes-cni = 0.6.0"},
		"3-1":   {"TransactionRefused", "kubelet < 3 is needed by (installed) user-1-1"},
		"2.5-1": {"WouldRemove", "bystander"},
	} {
		_, err := h.Stage(t.Context(), []upgrade.PackageChange{change(found["kubelet "+version], "1-1")})
		blocked := assertReason(t, err, want.reason)
		assert.Contains(t, blocked.Message, want.text, "rpm's reason belongs into the message")
		assert.True(t, blocked.Terminal)
	}
	assert.Equal(t, []string{"bystander 1-1 installed", "kubelet 1-1 installed", "user 1-1 installed"}, h.versions("kubelet", "user", "bystander"))
}

// What a package says of itself decides too, whatever rpm tells of its own work.
func TestWhatAPackageTakesThePlaceOfIsFoundInTheFileItself(t *testing.T) {
	h := newHost(t)
	require.NoError(t, h.store().MakeDirs())
	h.installs(rpmfile{name: "bystander", version: "1-1"})
	path := rpmfile{name: "kubelet", version: "4-1", obsoletes: "bystander <= 1"}.build(t)
	c := upgrade.PackageChange{Name: "kubelet", To: "4-1", File: "kubelet.rpm"}
	require.NoError(t, os.Rename(path, filepath.Join(h.StageDir(), c.File)))
	assertReason(t, h.obsoleted(t.Context(), []upgrade.PackageChange{c}, h.StageDir()), "WouldRemove")
}

func TestAFileThatIsNotWhatThePlanSaysIsNotInstalled(t *testing.T) {
	h, changes := staged(t, kubelet("1-1"), kubelet("2-1"))
	path := filepath.Join(h.StageDir(), changes[0].File)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "DigestMismatch")

	other := rpmfile{name: "evil", version: "2-1"}.build(t)
	data, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	changes[0].SHA256 = tool(t, "sha256sum", path)[:64]
	assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "PackageMismatch")
	assert.Equal(t, []string{"kubelet 1-1 installed"}, h.versions("kubelet"))
}

// B85: nothing that could be an option, a pattern or a path reaches a command line.
func TestNamesVersionsAndFilesThatAreNoneAreRefused(t *testing.T) {
	h := New(t.TempDir())
	good := upgrade.PackageChange{Name: "kubelet", To: "1.37.2-1", File: "x.rpm", SHA256: strings.Repeat("0", 64)}
	for name, breakIt := range map[string]func(*upgrade.PackageChange){
		"an option":            func(c *upgrade.PackageChange) { c.Name = "--nodeps" },
		"a shell's separator":  func(c *upgrade.PackageChange) { c.To = "1.30.4; rm -rf /" },
		"two words":            func(c *upgrade.PackageChange) { c.Name = "kubelet --allowerasing" },
		"a path as the file":   func(c *upgrade.PackageChange) { c.File = "../../x" },
		"a line break":         func(c *upgrade.PackageChange) { c.To = "1.30.4\n-1" },
		"no digest":            func(c *upgrade.PackageChange) { c.SHA256 = "" },
		"a pattern":            func(c *upgrade.PackageChange) { c.Name = "kube*" },
		"the kernel that runs": func(c *upgrade.PackageChange) { c.Name = "kernel-core" },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			require.NoError(t, checkChanges([]upgrade.PackageChange{c}), "it is the one thing that is wrong")
			breakIt(&c)
			var blocked *upgrade.Blocked
			_, err := h.Stage(t.Context(), []upgrade.PackageChange{c})
			require.ErrorAs(t, err, &blocked)
			assert.True(t, blocked.Terminal)
			require.ErrorAs(t, h.Install(t.Context(), []upgrade.PackageChange{c}, "/"), &blocked)
		})
	}
}

// Scriptlets that go through systemctl restart nothing; a removal may stop its service.
func TestScriptletsMayNotRestartServices(t *testing.T) {
	script := `local f = io.open("/log", "a"); f:write("offline=" .. (os.getenv("SYSTEMD_OFFLINE") or "") .. "\n"); f:close()`
	old := kubelet("1-1")
	old.postun = script
	h, changes := staged(t, old, kubelet("2-1"))
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, "offline=1\n", h.read("log"), "the old package's postun is where a restart would be")

	gone := rpmfile{name: "telnet", version: "1-1", postun: script}
	h.installs(gone)
	require.NoError(t, h.Install(t.Context(), []upgrade.PackageChange{{Name: "telnet", From: "1-1"}}, h.StageDir()))
	assert.Equal(t, "offline=1\noffline=\n", h.read("log"))
	assert.Empty(t, h.versions("telnet"))
}

// B11, B12: what the host's owner wrote stays, whatever the package says of the file.
func TestChangedConfigurationFilesAreKept(t *testing.T) {
	old, next := kubelet("1-1"), kubelet("2-1")
	old.config = map[string]string{"etc/kept.conf": "old", "etc/untouched.conf": "old"}
	next.config = map[string]string{"etc/kept.conf": "new", "etc/untouched.conf": "new"}
	old.replaced = map[string]string{"etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=\n", "etc/dropped.conf": "old"}
	next.replaced = map[string]string{"etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS= # new\n"}
	h, changes := staged(t, old, next)
	h.write("etc/kept.conf", "mine")
	h.write("etc/sysconfig/kubelet", "KUBELET_EXTRA_ARGS=--node-ip=192.0.2.7\n")
	h.write("etc/dropped.conf", "mine")
	require.NoError(t, os.Chmod(h.path("etc/sysconfig/kubelet"), 0o600))

	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, "mine", h.read("etc/kept.conf"))
	assert.Equal(t, "new", h.read("etc/kept.conf.rpmnew"))
	assert.Equal(t, "new", h.read("etc/untouched.conf"), "what nobody changed follows its package")
	assert.Equal(t, "KUBELET_EXTRA_ARGS=--node-ip=192.0.2.7\n", h.read("etc/sysconfig/kubelet"))
	assert.Equal(t, "KUBELET_EXTRA_ARGS= # new\n", h.read("etc/sysconfig/kubelet.rpmnew"))
	assert.NoFileExists(t, h.path("etc/sysconfig/kubelet.rpmsave"))
	assert.Equal(t, "mine", h.read("etc/dropped.conf"), "a file that the package no longer has")
	info, err := os.Stat(h.path("etc/sysconfig/kubelet"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// B22: the exit code decides nothing.
func TestAScriptThatFailsIsJudgedByWhatIsInstalled(t *testing.T) {
	next := kubelet("2-1")
	next.pre = `error("no")`
	h, changes := staged(t, kubelet("1-1"), next)
	err := h.Install(t.Context(), changes, h.StageDir())
	require.ErrorContains(t, err, "installing packages")
	assert.Equal(t, []string{"kubelet 1-1 installed"}, h.versions("kubelet"), "whole, in the old version")

	next = kubelet("2-1")
	next.post = `error("no")`
	h, changes = staged(t, kubelet("1-1"), next)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet"))
}

func TestAReportOfSuccessWithoutAnEffectIsAFailure(t *testing.T) {
	h, changes := staged(t, kubelet("1-1"), kubelet("2-1"))
	h.Runner = lying{}
	assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "NotApplied")
}

// lying runs everything but the transaction, of which it says that it went well.
type lying struct{ command.Exec }

func (l lying) Run(ctx context.Context, c command.Command) (command.Result, error) {
	if c.Argv[0] == "rpm" && c.Argv[1] == "-U" && !slices.Contains(c.Argv, "--test") {
		return command.Result{}, nil
	}
	return l.Exec.Run(ctx, c)
}

func TestInstallsAndRemovalsGoTogether(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, kubelet("2-1"))
	h.installs(kubelet("1-1"), rpmfile{name: "telnet", version: "1-1"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2-1"], "1-1"), {Name: "telnet", From: "1-1"}}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet", "telnet"))
}

func TestUnpackingTouchesNothingOfTheHost(t *testing.T) {
	next := kubelet("2-1")
	next.post = `io.open("/ran", "w"):close()`
	next.requires = "nothing-that-is-here"
	h := newHost(t)
	require.NoError(t, h.store().MakeDirs())
	path := next.build(t)
	digest := tool(t, "sha256sum", path)[:64]
	c := upgrade.PackageChange{Name: "kubelet", To: "2-1", File: digest + ".rpm", SHA256: digest}
	require.NoError(t, os.Rename(path, filepath.Join(h.StageDir(), c.File)))
	dir, remove, err := h.Unpack(t.Context(), c)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "usr/bin/kubelet"))
	require.NoError(t, err)
	assert.Equal(t, "2-1", string(data))
	assert.NoFileExists(t, filepath.Join(dir, "ran"))
	assert.NoFileExists(t, h.path("usr/bin/kubelet"))
	assert.Empty(t, h.versions("kubelet"))
	require.NoError(t, remove())
	assert.NoDirExists(t, dir)
}

func TestFilesOfEarlierPlansGo(t *testing.T) {
	h, changes := staged(t, kubelet("1-1"), kubelet("2-1"))
	old := filepath.Join(h.StageDir(), "old.rpm")
	require.NoError(t, os.WriteFile(old, nil, 0o644))
	require.NoError(t, h.store().Prune(changes, time.Now().Add(packagefile.StagedFor+time.Hour)))
	assert.NoFileExists(t, old)
	assert.FileExists(t, filepath.Join(h.StageDir(), changes[0].File), "needed")
}
