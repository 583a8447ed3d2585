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

// Exec runs argv inside the host as root and returns what it printed on stdout, also when it fails: then err is an
// *ExecError, or ErrOff. The command ends with the context.
func (h Host) Exec(ctx context.Context, stdin io.Reader, argv ...string) ([]byte, error) {
	var out, errOut bytes.Buffer
	cmd, err := h.Command(ctx, argv...)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.Bytes(), h.execError(argv, errOut.String(), err)
	}
	return out.Bytes(), nil
}

func (h Host) execError(argv []string, stderr string, err error) error {
	code := -1
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	return &ExecError{Host: h.Name, Argv: argv, ExitCode: code, Stderr: strings.TrimSpace(stderr), Err: err}
}

// Command prepares argv to run inside the host; the caller wires its input and output.
func (h Host) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	leader := h.Leader()
	if leader == 0 {
		return nil, fmt.Errorf("running %q on %s: %w", strings.Join(argv, " "), h.Name, ErrOff)
	}
	args := append([]string{"--target", strconv.Itoa(leader), "--all", "--"}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"TERM=" + os.Getenv("TERM")}
	// nsenter forks to enter the pid namespace: only the process group reaches the command itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
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
