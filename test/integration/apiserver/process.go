package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const stopTimeout = 20 * time.Second

// process is a program that dies with the test binary, even when that one is killed.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// startProcess keeps one locked thread for the child: its parent-death signal is
// bound to the thread that started it, and would fire when that thread ends.
func startProcess(logFile, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log of %s: %w", program, err)
	}
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{}), log: logFile}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer func() { _ = out.Close() }()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return p, nil
}

func (p *process) stop() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.cmd.Path, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		return p.kill()
	}
}

func (p *process) kill() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.cmd.Path, err)
	}
	<-p.done
	return nil
}

// await polls ready until it says yes, the process ends, or the context does.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended (%s): %s", p.cmd.Path, p.cmd.ProcessState, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: last: %w: %s", p.cmd.Path, ctx.Err(), err, p.tail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
