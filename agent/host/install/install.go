// Package install puts the executor and the unit that resumes it onto a host whose agent
// is a pod: what changes the host must outlive the pod, the runtime and the boot.
package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/systemd"
	units "github.com/refit-dev/refit/deploy/systemd"
)

// Where things are on the host. The directory of programs is one whose files SELinux lets
// systemd execute, and no package manager owns.
const (
	Program    = "/usr/local/bin/refit-executor"
	ResumeUnit = "refit-resume.service"
	unitDir    = "/etc/systemd/system"
	packaged   = "/usr/bin/refit-executor" // in the unit as it is shipped
)

// Units is the part of systemd that is needed.
type Units interface {
	Status(ctx context.Context, unit string) (systemd.Status, error)
	Reload(ctx context.Context) error
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
}

// Host is a host as a pod has it before it.
type Host struct {
	// Root of the paths in this package; "" is /.
	Root  string
	Units Units
}

func (h Host) path(name string) string { return filepath.Join("/", h.Root, name) }

// Install puts the executor at source onto the host, and refit-resume.service, enabled. A host
// that has both is left alone.
func (h Host) Install(ctx context.Context, source string) (changed bool, err error) {
	if changed, err = h.program(source); err != nil {
		return changed, fmt.Errorf("installing the executor on the host: %w", err)
	}
	unit, err := h.unit(ctx)
	if err != nil {
		return changed, fmt.Errorf("installing %s on the host: %w", ResumeUnit, err)
	}
	return changed || unit, nil
}

// program compares digests, since an executor that was cut short has a right name as well. The
// rename is atomic: one that runs goes on with its own.
func (h Host) program(source string) (changed bool, err error) {
	want, _, err := files.Digest(source)
	if err != nil {
		return false, err
	}
	target := h.path(Program)
	have, _, err := files.Digest(target)
	if err == nil && have == want {
		return false, os.Chmod(target, 0o755) //nolint:wrapcheck // the caller says what for
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := files.CopyAtomic(target, source, 0o755); err != nil {
		return false, err
	}
	if have, _, err = files.Digest(target); err != nil {
		return true, err
	}
	if have != want {
		return true, fmt.Errorf("%s has digest %s after it was written, not %s", target, have, want)
	}
	return true, nil
}

func (h Host) unit(ctx context.Context) (changed bool, err error) {
	want := strings.ReplaceAll(units.ResumeUnit, packaged, Program)
	file := h.path(filepath.Join(unitDir, ResumeUnit))
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading %s: %w", file, err)
	}
	if string(have) != want {
		if err := files.WriteAtomic(file, []byte(want), 0o644); err != nil {
			return false, err
		}
		if err := h.Units.Reload(ctx); err != nil {
			return true, err
		}
		changed = true
	}
	status, err := h.Units.Status(ctx, ResumeUnit)
	if err != nil || status.FileState == "enabled" {
		return changed, err
	}
	if err := h.Units.Enable(ctx, ResumeUnit); err != nil {
		return changed, err
	}
	return true, h.Units.Reload(ctx)
}

// Remove takes both off the host. Whoever calls it knows that no operation is open.
func (h Host) Remove(ctx context.Context) error {
	file := h.path(filepath.Join(unitDir, ResumeUnit))
	if _, err := os.Stat(file); err == nil {
		if err := h.Units.Disable(ctx, ResumeUnit); err != nil {
			return err
		}
	}
	for _, path := range []string{file, h.path(Program)} {
		if err := files.Remove(path); err != nil {
			return err
		}
	}
	return h.Units.Reload(ctx)
}
