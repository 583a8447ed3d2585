// Package command runs programs of the host. It is the only place that starts a
// process: always an argument vector, never a shell; standard input is /dev/null, so
// that nothing can wait for an answer; the whole process group ends with the context.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// defaultLimit bounds what is kept of each output stream; the tail is kept, errors are at the end.
	defaultLimit = 4 << 20
	// tailLimit bounds what of the output goes into an error.
	tailLimit = 2 << 10
	// killGrace is the time between SIGTERM and SIGKILL for a process group.
	killGrace = 10 * time.Second
)

// baseEnv is the whole environment of a child, unless the command adds to it: the
// caller's environment may hold secrets and a locale that changes messages.
var baseEnv = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"LC_ALL=C.UTF-8",
	"HOME=/root",
	"TERM=dumb",
}

// Command is one program run. Argv[0] is looked up in the fixed PATH of the runner.
type Command struct {
	Argv []string
	Env  []string // added to the base environment
	Dir  string
	// Timeout bounds the run; 0 leaves it to the context.
	Timeout time.Duration
	// Grace between SIGTERM and SIGKILL; 0 means ten seconds.
	Grace time.Duration
	// Log receives both streams as they come, besides being kept.
	Log io.Writer
	// Limit of each stream in bytes; 0 means four MiB. Only the tail is kept.
	Limit int
}

// Result is what a run left behind.
type Result struct {
	Stdout   string
	Stderr   string
	ExitCode int
	Duration time.Duration
}

// Output is both streams, standard error last, where programs put their reasons.
func (r Result) Output() string { return strings.TrimSpace(r.Stdout + "\n" + r.Stderr) }

// Runner runs commands. Exec is the real one.
type Runner interface {
	Run(ctx context.Context, c Command) (Result, error)
}

// Error is a program that ended otherwise than with exit code 0.
type Error struct {
	Argv     []string
	ExitCode int // -1 when a signal ended it
	Timeout  bool
	Tail     string // the last output
}

// Error implements error.
func (e *Error) Error() string {
	what := fmt.Sprintf("exit code %d", e.ExitCode)
	if e.Timeout {
		what = "ended after its time was up"
	}
	if e.Tail == "" {
		return fmt.Sprintf("%s: %s", e.Argv[0], what)
	}
	return fmt.Sprintf("%s: %s: %s", e.Argv[0], what, e.Tail)
}

// Exec runs commands on this host.
type Exec struct{}

// Run starts the program in a process group of its own and waits for it. When the
// context ends the group gets SIGTERM, then SIGKILL: no child stays behind.
func (Exec) Run(ctx context.Context, c Command) (Result, error) {
	if len(c.Argv) == 0 {
		return Result{}, errors.New("running a command: no program given")
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	stdout, stderr := newTail(c.Limit), newTail(c.Limit)
	cmd := c.prepare(ctx, stdout, stderr)
	start := time.Now()
	err := cmd.Run()
	killGroup(cmd) // what escaped the wait, such as a daemon that kept our pipes
	result := Result{
		Stdout:   stdout.String(),
		Stderr:   stderr.String(),
		ExitCode: cmd.ProcessState.ExitCode(),
		Duration: time.Since(start),
	}
	return result, c.failure(ctx, err, result)
}

func (c Command) prepare(ctx context.Context, stdout, stderr io.Writer) *exec.Cmd {
	if c.Log != nil {
		log := &lockedWriter{w: c.Log}
		stdout, stderr = io.MultiWriter(stdout, log), io.MultiWriter(stderr, log)
	}
	env := append(append([]string{}, baseEnv...), c.Env...)
	cmd := exec.CommandContext(ctx, lookPath(c.Argv[0]), c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, c.Dir, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	grace := c.Grace
	if grace == 0 {
		grace = killGrace
	}
	cmd.Cancel = func() error {
		time.AfterFunc(grace, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	cmd.WaitDelay = grace + time.Second
	return cmd
}

func (c Command) failure(ctx context.Context, err error, r Result) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) && ctx.Err() == nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	failure := &Error{Argv: c.Argv, ExitCode: r.ExitCode, Timeout: ctx.Err() != nil, Tail: Tail(r.Output(), tailLimit)}
	if ctx.Err() != nil {
		return errors.Join(failure, context.Cause(ctx))
	}
	return failure
}

// killGroup ends what is left of the group once its leader has gone.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// ExitCode is the exit code in an error of a run, or -1.
func ExitCode(err error) int {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.ExitCode
	}
	return -1
}
