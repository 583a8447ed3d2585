package apt

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// TestHelperHoldsTheLock is run as another process: a lock of one's own is not seen.
func TestHelperHoldsTheLock(t *testing.T) {
	path := os.Getenv("REFIT_HOLD_LOCK")
	if path == "" {
		t.Skip("only as a helper of the tests below")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock))
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is closed
}

func holdLock(t *testing.T, path string) (pid int, release func()) {
	t.Helper()
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperHoldsTheLock$")
	helper.Env = append(os.Environ(), "REFIT_HOLD_LOCK="+path)
	stdin, err := helper.StdinPipe()
	require.NoError(t, err)
	stdout, err := helper.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, helper.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	release = sync.OnceFunc(func() { // a test releases from a timer, the cleanup from its own goroutine
		_ = stdin.Close()
		_ = helper.Wait()
	})
	t.Cleanup(release)
	return helper.Process.Pid, release
}

func TestTheHolderOfTheLockIsNamed(t *testing.T) {
	h := newHost(t)
	holder, err := h.LockHolder()
	require.NoError(t, err)
	assert.Nil(t, holder)

	pid, release := holdLock(t, h.path("var/lib/dpkg/lock-frontend"))
	holder, err = h.LockHolder()
	require.NoError(t, err)
	require.NotNil(t, holder)
	assert.Equal(t, pid, holder.PID)
	assert.Equal(t, "apt.test", holder.Command)
	release()
	holder, err = h.LockHolder()
	require.NoError(t, err)
	assert.Nil(t, holder)
}

func TestALockThatIsGivenUpDelaysAndDoesNotFail(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"})
	h.LockTimeout = time.Minute
	_, release := holdLock(t, h.path("var/lib/dpkg/lock-frontend"))
	time.AfterFunc(1500*time.Millisecond, release)
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, true))
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"kubelet"}, holds)
}

func TestALockThatStaysIsAPassingFault(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, deb{name: "kubelet", version: "2"})
	h.installed(deb{name: "kubelet", version: "1"})
	changes := []upgrade.PackageChange{change(h.candidates(r, "kubelet")["kubelet 2"], "1")}
	_, err := h.Stage(t.Context(), changes)
	require.NoError(t, err)

	h.LockTimeout = 300 * time.Millisecond
	holdLock(t, h.path("var/lib/dpkg/lock-frontend"))
	blocked := assertReason(t, h.Install(t.Context(), changes, h.StageDir()), "PackageLockHeld")
	assert.False(t, blocked.Terminal)
	assert.Contains(t, blocked.Message, "apt.test")
	assert.Equal(t, []string{"kubelet 1 installed"}, h.versions("kubelet"))
}

func TestHoldsAreSetAndTakenAwayAndKeptByAnInstall(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"}, deb{name: "kubeadm", version: "1"}, deb{name: "own", version: "1"})
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet", "kubeadm", "own", "absent"}, true))
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false))
	require.NoError(t, h.SetHold(t.Context(), []string{"kubelet"}, false), "again is fine")
	holds, err := h.Holds(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"kubeadm", "own"}, holds)

	r := newRepository(t, deb{name: "kubelet", version: "2"}, deb{name: "kubeadm", version: "2"})
	found := h.candidates(r, "kubelet", "kubeadm")
	held := []upgrade.PackageChange{change(found["kubeadm 2"], "1")}
	_, err = h.Stage(t.Context(), held)
	require.NoError(t, err, "staging comes before the hold is taken off")
	require.Error(t, h.Install(t.Context(), held, h.StageDir()), "installing does not override a hold")
	assert.Equal(t, []string{"kubeadm 1 installed"}, h.versions("kubeadm"))

	free := []upgrade.PackageChange{change(found["kubelet 2"], "1")}
	_, err = h.Stage(t.Context(), free)
	require.NoError(t, err)
	require.NoError(t, h.Install(t.Context(), free, h.StageDir()))
	holds, err = h.Holds(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"kubeadm", "own"}, holds, "the holds of others stay")
}
