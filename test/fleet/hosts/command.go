package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// programs are what this package runs, with the Debian packages that have them.
var programs = map[string]string{
	"ip": "iproute2", "sysctl": "procps", "systemd-nspawn": "systemd-container", "journalctl": "systemd",
}

// Preflight names all that is missing on this machine to run hosts.
func Preflight() error {
	var missing []string
	for name, pkg := range programs {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("this machine cannot run hosts yet; on Debian: apt-get install %s", strings.Join(missing, " "))
	}
	_, err := hierarchies()
	return err
}

// run executes a program of the machine and puts what it printed into the error.
func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}

// runAll executes lines of "ip"-like arguments one after another and stops at the first failure.
func runAll(ctx context.Context, name string, lines ...[]string) error {
	for _, args := range lines {
		if _, err := run(ctx, name, args...); err != nil {
			return err
		}
	}
	return nil
}

func words(format string, args ...any) []string { return strings.Fields(fmt.Sprintf(format, args...)) }
