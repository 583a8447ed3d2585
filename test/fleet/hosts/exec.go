package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrOff says that the host is not running.
var ErrOff = errors.New("the host is off (start it with: fleet start)")

// ExecError is the failure of a command inside a host.
type ExecError struct {
	Host     string
	Argv     []string
	ExitCode int
	Stderr   string
	Err      error
}

// Error names host, command, exit code and what the command said.
func (e *ExecError) Error() string {
	if e.ExitCode < 0 { // a signal, or the context
		return fmt.Sprintf("running %q on %s: %v: %s", strings.Join(e.Argv, " "), e.Host, e.Err, e.Stderr)
	}
	return fmt.Sprintf("running %q on %s: exit code %d: %s", strings.Join(e.Argv, " "), e.Host, e.ExitCode, e.Stderr)
}

// Unwrap gives the error of the process.
func (e *ExecError) Unwrap() error { return e.Err }

// Leader is the pid, on this machine, of the host's systemd; 0 if the host is off.
func (h Host) Leader() int {
	pids, err := processesIn(h.cgroup() + "/machine")
	if err != nil {
		return 0
	}
	for _, p := range pids {
		if isInit(p) {
			return p
		}
	}
	return 0
}

// isInit says whether pid is process 1 of a namespace directly below ours; a pod's first process is one level deeper.
func isInit(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(ids)
			return len(f) == 2 && f[1] == "1"
		}
	}
	return false
}

// Running says whether the host's systemd is alive.
func (h Host) Running() bool { return h.Leader() != 0 }

// Streams are the input and output of a command; nil is nothing, as with os/exec.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Foreground leaves the command in our process group, so that it can read from our terminal.
	Foreground bool
}

// Exec runs argv inside the host as root and returns what it printed on stdout, also when it fails: then err is an
// *ExecError, or ErrOff. The command ends with the context.
func (h Host) Exec(ctx context.Context, stdin io.Reader, argv ...string) ([]byte, error) {
	var out, errOut bytes.Buffer
	err := h.Run(ctx, Streams{In: stdin, Out: &out, Err: &errOut}, argv...)
	var failed *ExecError
	if errors.As(err, &failed) {
		failed.Stderr = strings.TrimSpace(errOut.String())
	}
	return out.Bytes(), err
}

// Run runs argv inside the host as root, with the given streams.
func (h Host) Run(ctx context.Context, s Streams, argv ...string) error {
	cmd, err := h.startInside(func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, lookPath(argv[0]), argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + hostPath, "HOME=/root", "LANG=C.UTF-8", "TERM=" + os.Getenv("TERM")}
		cmd.WaitDelay = 5 * time.Second
		if !s.Foreground {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		}
		return cmd
	})
	if err != nil {
		return fmt.Errorf("running %q on %s: %w", strings.Join(argv, " "), h.Name, err)
	}
	if err := cmd.Wait(); err != nil {
		failed := &ExecError{Host: h.Name, Argv: argv, ExitCode: cmd.ProcessState.ExitCode(), Err: err}
		if ctx.Err() != nil {
			failed.Err = errors.Join(ctx.Err(), err)
		}
		return failed
	}
	return nil
}

// CopyIn copies a file of this machine onto the host, atomically: a reader in the host sees the old file or the new one.
func (h Host) CopyIn(ctx context.Context, src, dst string, mode os.FileMode) error {
	in, err := os.Open(src)
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w", src, h.Name, err)
	}
	defer in.Close()
	target := filepath.Join(h.RootDir(), dst)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("copying %s to %s: %w", src, h.Name, err)
	}
	tmp := target + ".incoming"
	if err := copyTo(tmp, in, mode); err != nil {
		return fmt.Errorf("copying %s to %s:%s: %w", src, h.Name, dst, errors.Join(err, os.Remove(tmp)))
	}
	if err := os.Rename(tmp, target); err != nil {
		return fmt.Errorf("copying %s to %s:%s: %w", src, h.Name, dst, err)
	}
	return ctx.Err()
}

func copyTo(path string, in io.Reader, mode os.FileMode) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}
