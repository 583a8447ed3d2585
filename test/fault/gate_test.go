package fault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// gate stands at the journal's directory: the kernel asks it before it lets anybody open
// something there, and the asker waits. So the unchanged executor is held exactly before
// it writes a record (the temporary file is opened) and exactly after (the directory is
// opened to be synced, after the rename), and can be killed there.
type gate struct {
	fd     int
	dir    string
	strike func(end)

	mu      sync.Mutex
	ends    []end
	writing bool
	closed  bool
	done    chan struct{}
}

// end is one of the two ends of a write of the journal.
type end struct {
	n     int // counted from 1
	after bool
	pid   int // of the executor, on this machine
}

func (e end) String() string {
	if e.after {
		return fmt.Sprintf("after write %d of the journal", (e.n+1)/2)
	}
	return fmt.Sprintf("before write %d of the journal", (e.n+1)/2)
}

// guard sets a gate up. strike is told of each end of a write while the executor waits
// there; the executor goes on when it returns, if it is still alive.
func (m *machine) guard(strike func(end)) *gate {
	m.t.Helper()
	dir := filepath.Join(m.root, stateDir, "journal")
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	require.NoError(m.t, err, "a kernel with fanotify permission events is needed")
	g := &gate{fd: fd, dir: filepath.Join(stateDir, "journal"), strike: strike, done: make(chan struct{})}
	require.NoError(m.t, unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM|unix.FAN_ONDIR|unix.FAN_EVENT_ON_CHILD, unix.AT_FDCWD, dir))
	m.gate = g
	go g.serve(m.t)
	m.t.Cleanup(g.open)
	return g
}

// open takes the gate away; who waits goes on.
func (g *gate) open() {
	g.mu.Lock()
	closed := g.closed
	g.closed = true
	g.mu.Unlock()
	if !closed {
		<-g.done
	}
}

func (g *gate) seen() []end {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]end(nil), g.ends...)
}

func (g *gate) serve(t *testing.T) {
	defer close(g.done)
	defer unix.Close(g.fd)
	buffer := make([]byte, 4096)
	for {
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if closed {
			return
		}
		fds := []unix.PollFd{{Fd: int32(g.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, 50); err != nil && !errors.Is(err, unix.EINTR) {
			t.Errorf("waiting at the gate: %v", err)
			return
		}
		n, err := unix.Read(g.fd, buffer)
		if err != nil {
			continue // nobody asked
		}
		g.answer(buffer[:n])
	}
}

func (g *gate) answer(events []byte) {
	const size = int(unsafe.Sizeof(unix.FanotifyEventMetadata{}))
	for len(events) >= size {
		event := (*unix.FanotifyEventMetadata)(unsafe.Pointer(&events[0]))
		if event.Fd >= 0 {
			name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", event.Fd))
			g.asked(name, int(event.Pid))
			var response [8]byte
			binary.NativeEndian.PutUint32(response[:4], uint32(event.Fd))
			binary.NativeEndian.PutUint32(response[4:], unix.FAN_ALLOW)
			_, _ = unix.Write(g.fd, response[:]) // nobody waits for it when the asker is dead
			_ = unix.Close(int(event.Fd))
		}
		events = events[event.Event_len:]
	}
}

// asked finds out which end of a write it is, if any: readers open records, not these.
func (g *gate) asked(name string, pid int) {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if filepath.Base(exe) != "refit-executor" {
		return
	}
	g.mu.Lock()
	before := strings.HasSuffix(name, ".tmp")
	after := g.writing && filepath.Base(name) == "journal"
	if !before && !after {
		g.mu.Unlock()
		return
	}
	g.writing = before
	e := end{n: len(g.ends) + 1, after: after, pid: pid}
	g.ends = append(g.ends, e)
	g.mu.Unlock()
	if g.strike != nil {
		g.strike(e)
	}
}
