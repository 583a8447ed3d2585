package rpm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// A script that waits while /slow is there, and says that it has begun, and that it has ended.
const slow = `
io.open("/began", "w"):close()
while posix.access("/slow") do posix.sleep(1) end
local f = io.open("/ended", "a"); f:write("x"); f:close()
`

// killed runs Install in the way a power cut would end it: rpm is killed once its script
// has begun, and nothing of ours comes after.
func killed(t *testing.T, h *host, changes []upgrade.PackageChange) {
	t.Helper()
	h.write("slow", "")
	h.Runner = cutOff{h: h}
	err := func() (err error) {
		defer func() {
			if recovered := recover(); recovered != nil {
				err, _ = recovered.(error)
			}
		}()
		return h.Install(t.Context(), changes, h.StageDir())
	}()
	require.ErrorIs(t, err, errPower)
	h.Runner = command.Exec{}
	require.NoError(t, os.Remove(h.path("slow")))
	require.FileExists(t, h.path("began"))
}

var errPower = errors.New("the power is gone")

// cutOff kills the transaction once its script has begun, and then everything.
type cutOff struct {
	command.Exec
	h *host
}

func (c cutOff) Run(ctx context.Context, cmd command.Command) (command.Result, error) {
	if cmd.Argv[0] != "rpm" || cmd.Argv[1] != "-U" || slices.Contains(cmd.Argv, "--test") {
		return c.Exec.Run(ctx, cmd)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(c.h.path("began")); err == nil {
				cancel()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	cmd.Grace = time.Millisecond
	_, _ = c.Exec.Run(ctx, cmd)
	panic(errPower)
}

// B10: whatever the transaction was doing, the next one finds the old version or the new one, whole.
func TestATransactionThatWasKilledIsFinished(t *testing.T) {
	for name, at := range map[string]func(old, next *rpmfile){
		"before unpacking":         func(_, next *rpmfile) { next.pre = slow },
		"after unpacking":          func(_, next *rpmfile) { next.post = slow },
		"while the old one leaves": func(old, _ *rpmfile) { old.postun = slow },
	} {
		t.Run(name, func(t *testing.T) {
			old, next := kubelet("1-1"), kubelet("2-1")
			old.replaced = map[string]string{"etc/kubelet.conf": "old"}
			next.replaced = map[string]string{"etc/kubelet.conf": "new"}
			at(&old, &next)
			h, changes := staged(t, old, next)
			h.write("etc/kubelet.conf", "mine")
			killed(t, h, changes)

			broken, err := h.Broken(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"kubelet"}, broken, "it is told, and not taken for what is installed")
			for _, p := range mustQuery(t, h) {
				assert.NotEqual(t, StateInstalled, p.State)
			}
			require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
			assert.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet"))
			assert.Equal(t, "2-1", h.read("usr/bin/kubelet"))
			assert.Equal(t, "x", h.read("ended")[:1], "the script that was cut off has run to its end")
			assert.Equal(t, "mine", h.read("etc/kubelet.conf"))
			broken, err = h.Broken(t.Context())
			require.NoError(t, err)
			assert.Empty(t, broken)
			assert.NoFileExists(t, h.transactionPath())
		})
	}
}

func mustQuery(t *testing.T, h *host) []upgrade.InstalledPackage {
	t.Helper()
	found, err := h.Query(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func TestATransactionThatWasKilledCanGoBack(t *testing.T) {
	next := kubelet("2-1")
	next.post = slow
	h, changes := staged(t, kubelet("1-1"), next)
	previous := kubelet("1-1").build(t)
	require.NoError(t, os.Rename(previous, filepath.Join(h.BackupDir(), "kubelet-1-1.rpm")))
	digest := tool(t, "sha256sum", filepath.Join(h.BackupDir(), "kubelet-1-1.rpm"))[:64]
	killed(t, h, changes)
	require.NoError(t, os.RemoveAll(h.StageDir()), "even without the files that it was begun with")
	back := []upgrade.PackageChange{{Name: "kubelet", From: "2-1", To: "1-1", File: "kubelet-1-1.rpm", SHA256: digest}}
	require.NoError(t, h.Install(t.Context(), back, h.BackupDir()))
	assert.Equal(t, []string{"kubelet 1-1 installed"}, h.versions("kubelet"))
	assert.Equal(t, "1-1", h.read("usr/bin/kubelet"))
}

// A transaction of another tool that was killed leaves a package in two versions.
func TestAPackageInTwoVersionsIsRepaired(t *testing.T) {
	h := newHost(t)
	h.installs(kubelet("1-1"))
	tool(t, h.rpm("rpm", "-i", "--force", "--", kubelet("2-1").build(t))...)
	require.Equal(t, []string{"kubelet 2-1 duplicated"}, h.versions("kubelet"))
	require.NoError(t, h.Repair(t.Context()))
	assert.Equal(t, []string{"kubelet 2-1 installed"}, h.versions("kubelet"))
	assert.Equal(t, "2-1", h.read("usr/bin/kubelet"))
}

func TestATransactionThatCannotBeFinishedIsNamed(t *testing.T) {
	next := kubelet("2-1")
	next.post = slow
	h, changes := staged(t, kubelet("1-1"), next)
	killed(t, h, changes)
	require.NoError(t, os.RemoveAll(h.StageDir()))
	require.NoError(t, os.WriteFile(h.path("usr/bin/kubelet"), []byte("half"), 0o755))
	tool(t, h.rpm("rpm", "-e", "--justdb", "--", "kubelet-1-1")...)
	blocked := assertReason(t, h.Repair(t.Context()), upgrade.ReasonPackageDBBroken)
	assert.Contains(t, blocked.Message, "kubelet")
}

// A damaged index makes rpm say that a package is not installed: it is not believed, and
// repaired. A damaged package is not, since rpm's rebuild would lose it and say nothing.
func TestADamagedDatabaseIsRebuiltOrNamedAndLosesNothing(t *testing.T) {
	h := newHost(t)
	h.installs(kubelet("1-1"), rpmfile{name: "bash", version: "5-1"})
	path := h.path("var/lib/rpm/rpmdb.sqlite")
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	const page = 4096
	rebuilt, named := 0, 0
	for at := page; at < len(sound) && (rebuilt < 1 || named < 1); at += page {
		damaged := slices.Clone(sound)
		copy(damaged[at:at+page], bytes.Repeat([]byte{0xff}, page))
		require.NoError(t, os.WriteFile(path, damaged, 0o644))
		_, err := h.Query(t.Context(), []string{"kubelet"})
		unbelieved := err != nil
		switch err := h.Repair(t.Context()); {
		case err == nil:
			assert.Equal(t, []string{"bash 5-1 installed", "kubelet 1-1 installed"}, h.versions("kubelet", "bash"), "page %d", at/page)
			rebuilt++
		case unbelieved || at == page:
			assertReason(t, err, upgrade.ReasonPackageDBBroken)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, len(damaged), len(after), "left as it is")
			named++
		}
	}
	assert.GreaterOrEqual(t, rebuilt, 1)
	assert.GreaterOrEqual(t, named, 1)
}

func TestADatabaseThatIsLostIsNamed(t *testing.T) {
	h := newHost(t)
	h.installs(kubelet("1-1"))
	require.NoError(t, os.WriteFile(h.path("var/lib/rpm/rpmdb.sqlite"), []byte("not a database, for longer than a header of one is: 0123456789012345678901234567890123456789012345678901234567890"), 0o644))
	for _, file := range []string{"rpmdb.sqlite-wal", "rpmdb.sqlite-shm"} {
		_ = os.Remove(h.path("var/lib/rpm", file))
	}
	_, err := h.Query(t.Context(), []string{"kubelet"})
	require.Error(t, err, "unreadable is not the same as not installed")
	assertReason(t, h.Repair(t.Context()), upgrade.ReasonPackageDBBroken)
}

// B13: a lock is waited for, and its holder named.
func TestALockOfRpmIsWaitedForAndItsHolderNamed(t *testing.T) {
	h, changes := staged(t, kubelet("1-1"), kubelet("2-1"))
	f, err := os.OpenFile(h.path("var/lib/rpm/.rpm.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	require.NoError(t, syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}))
	holder, err := h.LockHolder()
	require.NoError(t, err)
	assert.Nil(t, holder, "our own is none")
	require.NoError(t, f.Close())

	// Another process: an rpm whose script waits.
	slowly := rpmfile{name: "slowly", version: "1-1", post: slow}.build(t)
	h.write("slow", "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = command.Exec{}.Run(ctx, command.Command{Argv: h.rpm("rpm", "-U", "--", slowly)})
	}()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool { _, err := os.Stat(h.path("began")); return err == nil }, time.Minute, 20*time.Millisecond)
	blocked := assertReason(t, h.Install(t.Context(), changes, h.StageDir()), upgrade.ReasonPackageLockHeld)
	assert.False(t, blocked.Terminal)
	assert.Contains(t, blocked.Message, "rpm")
	assert.Equal(t, []string{"kubelet 1-1 installed"}, h.versions("kubelet"))
	h.LockTimeout = time.Minute
	require.NoError(t, os.Remove(h.path("slow")))
	require.NoError(t, h.Install(t.Context(), changes, h.StageDir()))
}
