package artefacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// command is one program to run; its output goes to a log file, whose end becomes part of the error.
type command struct {
	dir  string
	env  []string // added to the environment
	log  string
	argv []string
}

// tailLines is how much of a failed command's output an error carries.
const tailLines = 15

func (c command) run(ctx context.Context) error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	tail := &tailWriter{}
	cmd := c.cmd(ctx)
	both := teeing{log, tail}
	cmd.Stdout, cmd.Stderr = both, both
	if err := errors.Join(cmd.Run(), log.Close()); err != nil {
		return fmt.Errorf("running %s: %w (whole output in %s)\n%s", strings.Join(c.argv, " "), err, c.log, tail)
	}
	return nil
}

// output returns what the program wrote to its standard output.
func (c command) output(ctx context.Context) ([]byte, error) {
	cmd := c.cmd(ctx)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", strings.Join(c.argv, " "), err, bytes.TrimSpace(append(stderr.Bytes(), out...)))
	}
	return out, nil
}

func (c command) cmd(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

type teeing struct {
	file *os.File
	tail *tailWriter
}

func (t teeing) Write(p []byte) (int, error) {
	_, _ = t.tail.Write(p)
	return t.file.Write(p)
}

// tailWriter keeps the end of what is written to it.
type tailWriter struct{ buf []byte }

func (t *tailWriter) Write(p []byte) (int, error) {
	const keep = 16 << 10
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*keep {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-keep:]...)
	}
	return len(p), nil
}

func (t *tailWriter) String() string {
	lines := strings.Split(strings.TrimRight(string(t.buf), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
