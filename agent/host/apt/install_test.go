package apt

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
	"github.com/refit-dev/refit/pkg/upgrade"
)

func assertReason(t *testing.T, err error, reason string) *upgrade.Blocked {
	t.Helper()
	var blocked *upgrade.Blocked
	require.ErrorAs(t, err, &blocked)
	assert.Equal(t, reason, blocked.Reason, blocked.Message)
	return blocked
}

func TestAPackageGoesFromTheSignedIndexToTheHost(t *testing.T) {
	h := newHost(t)
	old := deb{name: "kubelet", version: "1.36.3-1.1", files: map[string]string{"usr/bin/kubelet": "old"}}
	r := newRepository(t, deb{name: "kubelet", version: "1.37.2-1.1", files: map[string]string{"usr/bin/kubelet": "new"}},
		deb{name: "kubelet", version: "1.37.1-1.1"}, old, deb{name: "other", version: "1"})
	h.installed(old)
	found := h.candidates(r, "kubelet")
	require.Len(t, found, 3)
	c := found["kubelet 1.37.2-1.1"]
	assert.Equal(t, r.uri(), c.Source)
	assert.EqualValues(t, 4096, c.InstalledSize)

	changes := []upgrade.PackageChange{change(c, "1.36.3-1.1")}
	findings, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	assert.Empty(t, findings)
	assert.Equal(t, []string{"kubelet 1.36.3-1.1 installed"}, h.versions("kubelet"), "staging changes nothing")

	r.Answer(500) // installing must not need the repository
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, []string{"kubelet 1.37.2-1.1 installed"}, h.versions("kubelet"))
	assert.Equal(t, "new", h.read("usr/bin/kubelet"))
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()), "again is fine")

	// And back, from the file that was kept.
	file, digest, err := h.Find(t.Context(), "kubelet", "1.36.3-1.1")
	require.NoError(t, err)
	back := []upgrade.PackageChange{{Name: "kubelet", From: "1.37.2-1.1", To: "1.36.3-1.1", File: file, SHA256: digest}}
	require.NoError(t, h.Install(t.Context(), back, h.BackupDir()))
	assert.Equal(t, "old", h.read("usr/bin/kubelet"))
}

func TestTheHostsOwnListsStayAsTheyAre(t *testing.T) {
	h := newHost(t)
	h.candidates(newRepository(t, deb{name: "kubelet", version: "1.37.2-1.1"}), "kubelet")
	entries, err := os.ReadDir(h.path("var/lib/apt/lists"))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "only the directory partial: %v", entries)
}

func TestAVersionWithPlusAndEpochIsFetchedInstalledAndKept(t *testing.T) {
	h := newHost(t)
	old := deb{name: "containerd.io", version: "1:1.7.5+k0s.0-1"}
	r := newRepository(t, deb{name: "containerd.io", version: "1:1.7.6+k0s.0~rc1-1"}, old)
	h.installed(old)
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
	h.installed(deb{name: "kubelet", version: "1.36.3-1.1"})
	r := newRepository(t, deb{name: "kubelet", version: "1.37.2-1.1"})
	c := h.candidates(r, "kubelet")["kubelet 1.37.2-1.1"]
	findings, err := h.Stage(t.Context(), []upgrade.PackageChange{change(c, "1.36.3-1.1")})
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Equal(t, "NoRollbackPackage", findings[0].Reason)
	_, _, err = h.Find(t.Context(), "kubelet", "1.36.3-1.1")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestATransactionThatDoesMoreThanAskedIsRefused(t *testing.T) {
	r := newRepository(t,
		deb{name: "kubelet", version: "2", depends: "kubernetes-cni (= 0.6.0)"},
		deb{name: "kubernetes-cni", version: "0.7.5"},
		deb{name: "breaker", version: "1"})
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"}, deb{name: "user", version: "1", depends: "kubelet (= 1)"})
	found := h.candidates(r, "kubelet", "kubernetes-cni")

	_, err := h.Stage(t.Context(), []upgrade.PackageChange{change(found["kubelet 2"], "1")})
	blocked := assertReason(t, err, "TransactionRefused")
	assert.Contains(t, blocked.Message, "kubernetes-cni (= 0.6.0)", "the solver's reason belongs into the message")
	assert.True(t, blocked.Terminal)

	r.publish(deb{name: "kubelet", version: "3"})
	c := h.candidates(r, "kubelet")["kubelet 3"]
	_, err = h.Stage(t.Context(), []upgrade.PackageChange{change(c, "1")})
	blocked = assertReason(t, err, "WouldRemove")
	assert.Contains(t, blocked.Message, "user")
	assert.Equal(t, []string{"kubelet 1 installed", "user 1 installed"}, h.versions("kubelet", "user"))
}

func TestAFileThatIsNotWhatThePlanSaysIsNotInstalled(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, deb{name: "kubelet", version: "1.37.2-1.1"})
	c := h.candidates(r, "kubelet")["kubelet 1.37.2-1.1"]
	changes := []upgrade.PackageChange{change(c, "")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)

	staged := filepath.Join(h.StageDir(), changes[0].File)
	data, err := os.ReadFile(staged)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(staged, append(data, 'x'), 0o644))
	assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "DigestMismatch")
	assert.Empty(t, h.versions("kubelet"))

	// Another package under a digest that is right: the index lied.
	evil := deb{name: "evil", version: "1"}.build(t)
	data, err = os.ReadFile(evil)
	require.NoError(t, err)
	lie := changes[0]
	lie.File, lie.SHA256 = "lie.deb", sum(data)
	require.NoError(t, os.WriteFile(filepath.Join(h.StageDir(), lie.File), data, 0o644))
	assertReason(t, h.Install(t.Context(), []upgrade.PackageChange{lie}, h.StageDir()), "PackageMismatch")

	// The mirror changed the file behind the signed index.
	require.NoError(t, os.Remove(staged))
	r.write(c.Path, strings.Repeat("y", int(c.Size)))
	_, err = h.Stage(t.Context(), changes)
	require.Error(t, err)
	assert.NoFileExists(t, staged)
}

func TestNoMaintainerScriptRestartsAService(t *testing.T) {
	h := newHost(t)
	probe := "#!/bin/sh\n\"$DPKG_ROOT/usr/sbin/policy-rc.d\" kubelet restart; echo \"$? $SYSTEMD_OFFLINE $DEBIAN_FRONTEND $NEEDRESTART_MODE\" >\"$DPKG_ROOT/seen\"\n"
	r := newRepository(t, deb{name: "kubelet", version: "2", scripts: map[string]string{"postinst": probe}})
	h.installed(deb{name: "kubelet", version: "1"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)

	own := "#!/bin/sh\nexit 0 # the host's own\n"
	require.NoError(t, os.WriteFile(h.path(policyPath), []byte(own), 0o755))
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
	assert.Equal(t, "101 1 noninteractive l\n", h.read("seen"))
	assert.Equal(t, own, h.read(policyPath), "the host's own policy must be back")
	assert.NoFileExists(t, h.path(policySave))
}

func TestFilesOfOldPlansGoAndThoseOfThisOneStay(t *testing.T) {
	h := newHost(t)
	require.NoError(t, h.store().MakeDirs())
	long := time.Now().Add(-365 * 24 * time.Hour)
	put := func(dir, name string, at time.Time) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
		return path
	}
	gone := []string{put(h.StageDir(), "old.deb", long), put(h.BackupDir(), "kubelet_1.deb", long), put(h.BackupDir(), "kubelet_1.deb.sha256", long)}
	stay := []string{
		put(h.StageDir(), "this.deb", long), put(h.StageDir(), "young.deb", time.Now()),
		put(h.BackupDir(), "kubelet_2.deb", long), put(h.BackupDir(), "kubelet_2.deb.sha256", long),
	}
	require.NoError(t, h.store().Prune([]upgrade.PackageChange{{Name: "kubelet", From: "2", To: "3", File: "this.deb"}}, time.Now()))
	for _, path := range gone {
		assert.NoFileExists(t, path)
	}
	for _, path := range stay {
		assert.FileExists(t, path)
	}
}

func TestAConfigurationFileOfTheSiteIsKept(t *testing.T) {
	shipped := func(version, content string) deb {
		return deb{name: "containerd.io", version: version, files: map[string]string{"etc/containerd/config.toml": content}, conffiles: []string{"/etc/containerd/config.toml"}}
	}
	for name, edit := range map[string]func(path string) error{
		"self-made": func(path string) error { return os.WriteFile(path, []byte("site"), 0o644) },
		"edited":    func(path string) error { return os.WriteFile(path, []byte("site"), 0o644) },
		"deleted":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			config := h.path("etc/containerd/config.toml")
			if name == "self-made" {
				h.installed(deb{name: "containerd.io", version: "1"})
				require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o755))
			} else {
				h.installed(shipped("1", "first"))
			}
			require.NoError(t, edit(config))
			r := newRepository(t, shipped("2", "second"))
			changes := []upgrade.PackageChange{change(h.candidates(r, "containerd.io")["containerd.io 2"], "1")}
			_, err := h.Stage(t.Context(), changes)
			require.NoError(t, err)
			require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
			if name == "deleted" {
				assert.NoFileExists(t, config)
			} else {
				assert.Equal(t, "site", h.read("etc/containerd/config.toml"))
			}
		})
	}
}

func TestAScriptThatHangsIsEndedAndTheDatabaseRepaired(t *testing.T) {
	h := newHost(t)
	// Hangs the first time, as a dialog would; the repair runs it again.
	hang := "#!/bin/sh\n[ -e \"$DPKG_ROOT/once\" ] && exit 0\ntouch \"$DPKG_ROOT/once\"\nsleep 600\n"
	r := newRepository(t, deb{name: "kubelet", version: "2", scripts: map[string]string{"postinst": hang}})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // time is up in the middle of the script
		defer cancel()
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(h.path("once")); err == nil {
				return
			}
		}
	}()
	start := time.Now()
	require.NoError(t, h.Install(ctx, changes, h.StageDir()), "what is installed decides")
	assert.Less(t, time.Since(start), 5*time.Minute)
	assert.Equal(t, []string{"kubelet 2 installed"}, h.versions("kubelet"))
}

func TestADatabaseThatStaysBrokenIsNamed(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, deb{name: "kubelet", version: "2", scripts: map[string]string{"postinst": "#!/bin/sh\nexit 7\n"}})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	blocked := assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "PackageDBBroken")
	assert.Contains(t, blocked.Message, "kubelet")
	assert.Equal(t, []string{"kubelet 2 half-configured"}, h.versions("kubelet"), "that is not installed")
	broken, err := h.Broken(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, broken)
}

func TestAnInterruptedTransactionIsFinishedByRepair(t *testing.T) {
	h := newHost(t)
	path := deb{name: "containerd.io", version: "1.7.19-1", scripts: map[string]string{"postinst": "#!/bin/sh\nexit 0\n"}}.build(t)
	_, err := h.Runner.Run(t.Context(), cmd(h.dpkg("--unpack", path)...))
	require.NoError(t, err)
	assert.Equal(t, []string{"containerd.io 1.7.19-1 unpacked"}, h.versions("containerd.io"))
	require.NoError(t, h.Repair(t.Context()))
	assert.Equal(t, []string{"containerd.io 1.7.19-1 installed"}, h.versions("containerd.io"))
	require.NoError(t, h.Repair(t.Context()))
}

func TestRemovingAPackageTakesOnlyThatOne(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "telnet", version: "1"}, deb{name: "libtelnet", version: "1"})
	gone := []upgrade.PackageChange{{Name: "telnet", From: "1"}}
	_, err := h.Stage(t.Context(), gone)
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), gone, h.StageDir()))
	assert.Equal(t, []string{"libtelnet 1 installed"}, h.versions("telnet", "libtelnet"))
	require.NoError(t, h.Install(t.Context(), gone, h.StageDir()), "again is fine")
}

func TestAChangeThatCouldBeReadAsSomethingElseIsRefused(t *testing.T) {
	h := newHost(t)
	digest := strings.Repeat("0", 64)
	for name, c := range map[string]upgrade.PackageChange{
		"an option as name":     {Name: "--allow-downgrades", To: "1", File: "a.deb", SHA256: digest},
		"two words as name":     {Name: "kubelet kubeadm", To: "1", File: "a.deb", SHA256: digest},
		"a path as name":        {Name: "../../x", To: "1", File: "a.deb", SHA256: digest},
		"a shell text":          {Name: "kubelet", To: "v1.30.4; rm -rf /", File: "a.deb", SHA256: digest},
		"a line end":            {Name: "kubelet", To: "1\n2", File: "a.deb", SHA256: digest},
		"a file outside":        {Name: "kubelet", To: "1", File: "../a.deb", SHA256: digest},
		"a missing digest":      {Name: "kubelet", To: "1", File: "a.deb"},
		"a digest with letters": {Name: "kubelet", To: "1", File: "a.deb", SHA256: strings.Repeat("Z", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			var blocked *upgrade.Blocked
			require.ErrorAs(t, h.Install(t.Context(), []upgrade.PackageChange{c}, h.StageDir()), &blocked)
			assert.True(t, blocked.Terminal)
			_, err := h.Stage(t.Context(), []upgrade.PackageChange{c})
			require.ErrorAs(t, err, &blocked)
		})
	}
}

// forgetful is an apt that says that all is well and does nothing, as for a package that
// is held back or phased.
type forgetful struct{ command.Runner }

func (f forgetful) Run(ctx context.Context, c command.Command) (command.Result, error) {
	if c.Argv[0] == "apt-get" && slices.Contains(c.Argv, "install") && !slices.Contains(c.Argv, "--simulate") && !slices.Contains(c.Argv, "-s") {
		return command.Result{Stdout: "The following packages have been kept back:\n  kubelet\n0 upgraded, 0 newly installed, 0 to remove and 1 not upgraded.\n"}, nil
	}
	return f.Runner.Run(ctx, c)
}

func TestAReportOfSuccessWithoutAnEffectIsAFailure(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"})
	r := newRepository(t, deb{name: "kubelet", version: "2"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)
	h.Runner = forgetful{h.Runner}
	blocked := assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "NotApplied")
	assert.Contains(t, blocked.Message, "kept back")
	assert.Equal(t, []string{"kubelet 1 installed"}, h.versions("kubelet"))
}
