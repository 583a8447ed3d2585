package executor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/agent/store"
)

// TestNothingOfRefitsStateIsForOthers has everything written that an agent and an executor
// write, on a host whose mask keeps nothing closed and where somebody has opened the directory.
func TestNothingOfRefitsStateIsForOthers(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	b := worker(t)
	dir := b.dir
	require.NoError(t, os.Chmod(dir, 0o777))

	s := store.New(dir)
	_, err := s.Claim("machine")
	require.NoError(t, err)
	require.NoError(t, s.MakeDirs())
	require.NoError(t, s.SavePlan(store.FrozenPlan{Plan: b.op.Plan}))
	require.NoError(t, s.SaveIntent(store.Intent{Operation: b.op}))
	require.NoError(t, s.SaveOperation(b.op))
	packages := packagefile.Store{StageDir: filepath.Join(dir, "stage"), BackupDir: filepath.Join(dir, "backup/packages")}
	require.NoError(t, packages.MakeDirs())
	kept := filepath.Join(t.TempDir(), "x.deb")
	require.NoError(t, os.WriteFile(kept, []byte("x"), 0o644))
	require.NoError(t, packagefile.Record(filepath.Join(packages.BackupDir, "x.deb"), kept))
	e := New(Config{StateDir: dir, MachineID: "machine", Host: b.host.Host(), Poll: 50 * time.Microsecond, DeadlineCap: 2 * time.Second})
	rec, err := e.Run(t.Context(), b.op)
	require.NoError(t, err)
	require.Equal(t, journal.Successful, rec.State, rec.Message)

	seen := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		seen++
		name := strings.TrimPrefix(path, dir)
		if name == "/stage" { // what is in it is public, and the directory above is closed
			assert.Zero(t, info.Mode().Perm()&0o022, name)
			return nil
		}
		assert.Zero(t, info.Mode().Perm()&0o077, "%s is %s", name, info.Mode())
		return nil
	}))
	assert.Greater(t, seen, 10)
}

// A link where the state should be leads an executor that is root to wherever it points.
func TestStateThatIsALinkIsNotGoneBy(t *testing.T) {
	b := worker(t)
	link := filepath.Join(t.TempDir(), "refit")
	require.NoError(t, os.Symlink(b.dir, link))
	_, err := New(Config{StateDir: link, Host: b.host.Host(), LockWait: time.Second}).Run(t.Context(), b.op)
	require.ErrorContains(t, err, "is a link")

	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(victim, filepath.Join(b.dir, "lock")))
	_, err = New(Config{StateDir: b.dir, Host: b.host.Host(), LockWait: time.Second}).Run(t.Context(), b.op)
	require.Error(t, err)
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}

// The units close the directories before any program runs; nothing that a person of the host may write decides what root does.
func TestTheUnitsCloseTheDirectories(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/refit-agent.service")
	require.NoError(t, err)
	for _, line := range []string{"StateDirectoryMode=0700", "RuntimeDirectoryMode=0700", "UMask=0077", "NoNewPrivileges=yes", "ProtectSystem=strict"} {
		assert.Contains(t, string(text), "\n"+line+"\n")
	}
	resume, err := os.ReadFile("../../deploy/systemd/refit-resume.service")
	require.NoError(t, err)
	assert.Contains(t, string(resume), "\nUMask=0022\n", "a package that is installed at boot is installed like any other: an operation's own unit has systemd's mask")
	for _, unit := range []string{string(text), string(resume)} {
		for line := range strings.Lines(unit) {
			assert.NotRegexp(t, `^(EnvironmentFile|Exec[A-Za-z]*)=.*/(tmp|home|var/tmp)/`, line)
		}
	}
}
