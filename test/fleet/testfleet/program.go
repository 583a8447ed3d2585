package testfleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/test/fleet/state"
)

const (
	killTimeout = 30 * time.Second

	// programPackage is the fleet program, which daemon and monitors are.
	programPackage = "github.com/refit-dev/refit/test/fleet"
)

// Program is set by the fleet program to its own path. Elsewhere, as in a test, the program is built on first use: daemon
// and monitors outlive the test binary, so they cannot be it.
var Program string

func (f *Fleet) programPath(ctx context.Context) (string, error) {
	if Program != "" {
		return Program, nil
	}
	if f.program != "" {
		return f.program, nil
	}
	path := filepath.Join(state.Dir(f.record.Name), "fleet")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("building the fleet program: %w", err)
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, programPackage).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the fleet program: %w: %s", err, out)
	}
	f.program = path
	return path, nil
}
