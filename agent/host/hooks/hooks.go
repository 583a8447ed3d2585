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

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)

// Hooks of the host under Root.
type Hooks struct {
	Root   string
	Runner command.Runner
	// Owner of every hook and of their directory: root.
	Owner uint32
}

// New returns the hooks of the host under root.
func New(root string) *Hooks { return &Hooks{Root: root, Runner: command.Exec{}} }

// Run runs one hook; its exit code is its answer.
func (h *Hooks) Run(ctx context.Context, name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("hook %q: want the bare name of a file in %s", name, Dir)
	}
	dir := filepath.Join(h.Root, Dir)
	program := filepath.Join(dir, name)
	if err := errors.Join(h.trusted(dir, fs.ModeDir), h.trusted(program, 0)); err != nil {
		return err
	}
	if _, err := h.Runner.Run(ctx, command.Command{Argv: []string{program}, Timeout: timeout}); err != nil {
		return fmt.Errorf("running %s: %w", program, err)
	}
	return nil
}

// trusted says that only root can have put a file there. A link is not followed: what
// it leads to may be anybody's.
func (h *Hooks) trusted(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("looking for a hook: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is not what it should be (%s): hooks are plain files, links are not followed", path, info.Mode().Type())
	case !ok || stat.Uid != h.Owner:
		return fmt.Errorf("%s does not belong to root: chown it", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others than root (%s): chmod go-w", path, info.Mode().Perm())
	case kind == 0 && info.Mode().Perm()&0o100 == 0:
		return fmt.Errorf("%s cannot be executed: chmod +x", path)
	}
	return nil
}
