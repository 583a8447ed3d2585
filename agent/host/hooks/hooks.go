// Package hooks runs programs that the host's owner has put on the host. A plan can
// name one and nothing else: no path, no argument.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/refit-dev/refit/agent/host/command"
)

// Dir is where hooks are.
const Dir = "/etc/refit/hooks.d"

const timeout = 25 * time.Minute

// maxOutput bounds what is kept of what a hook prints; the end is kept.
const maxOutput = 64 << 10

// validName is that of admission.
var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)

// Hooks of the host under Root.
type Hooks struct {
	Root   string
	Runner command.Runner
	// Owner of every hook and of the directories above it: root.
	Owner uint32
}

// New returns the hooks of the host under root.
func New(root string) *Hooks { return &Hooks{Root: root, Runner: command.Exec{}} }

// Check says whether a hook could be run, and runs nothing.
func (h *Hooks) Check(name string) error {
	_, err := h.find(name)
	return err
}

// Run runs one hook with some variables; its exit code is its answer, and the end of what it
// printed is returned.
func (h *Hooks) Run(ctx context.Context, name string, env []string) (output string, err error) {
	program, err := h.find(name)
	if err != nil {
		return "", err
	}
	result, err := h.Runner.Run(ctx, command.Command{Argv: []string{program}, Env: env, Dir: "/", Timeout: timeout, Limit: maxOutput})
	if err != nil {
		return "", fmt.Errorf("running %s: %w", program, err)
	}
	return command.Tail(result.Output(), maxTold), nil
}

// maxTold bounds what of its output goes into the record.
const maxTold = 2 << 10

// find is the program of a hook that only root can have put there: no directory on the way to
// it may be anybody else's, for then it could be exchanged.
func (h *Hooks) find(name string) (string, error) {
	if !validName.MatchString(name) {
		return "", fmt.Errorf("hook %q: want the bare name of a file in %s", name, Dir)
	}
	for _, dir := range []string{"/etc", filepath.Dir(Dir), Dir} {
		if err := h.trusted(filepath.Join(h.Root, dir), fs.ModeDir); err != nil {
			return "", err
		}
	}
	program := filepath.Join(h.Root, Dir, name)
	return program, h.trusted(program, 0)
}

// trusted says that only root can have put a file there. A link is not followed: what
// it leads to may be anybody's.
func (h *Hooks) trusted(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && kind == 0 {
		return fmt.Errorf("there is no hook %s: put the program there, owned by root and executable, or take its name out of spec.hooks", path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s, so this host has no hooks: make it, owned by root, and put the program there, or take spec.hooks away", path)
	}
	if err != nil {
		return fmt.Errorf("looking for a hook: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is not what it should be (%s): hooks are plain files in plain directories, links are not followed", path, info.Mode().Type())
	case !ok || stat.Uid != h.Owner:
		return fmt.Errorf("%s does not belong to root: chown it", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others than root (%s): chmod go-w", path, info.Mode().Perm())
	case kind == 0 && info.Mode().Perm()&0o100 == 0:
		return fmt.Errorf("%s cannot be executed: chmod +x", path)
	}
	return nil
}
