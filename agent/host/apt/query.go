package apt

import (
	"context"
	"fmt"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// StateInstalled is the state of a package that is whole.
const StateInstalled = packagefile.StateInstalled

// Query is the state of packages as dpkg has it; a package that dpkg does not know,
// or of which only configuration files are left, is left out. So is a name that dpkg
// could not have: nobody has installed that, and the others are known all the same.
func (a *Apt) Query(ctx context.Context, names []string) ([]upgrade.InstalledPackage, error) {
	possible := kind.Possible(names)
	if len(possible) == 0 {
		return nil, nil // no name at all would ask dpkg for every package
	}
	return a.dpkgQuery(ctx, possible)
}

func (a *Apt) dpkgQuery(ctx context.Context, names []string) ([]upgrade.InstalledPackage, error) {
	argv := []string{"dpkg-query", "--admindir=" + a.dpkgDir(), "-W", "-f", "${Package}\t${Version}\t${db:Status-Status}\t${db:Status-Eflag}\n", "--"}
	result, err := a.run(ctx, queryTimeout, append(argv, names...))
	// dpkg-query ends with 1 when it does not know one of the names, and prints the others.
	if err != nil && command.ExitCode(err) != 1 {
		return nil, fmt.Errorf("asking dpkg for packages: %w", err)
	}
	return parseQuery(result.Stdout), nil
}

func parseQuery(output string) []upgrade.InstalledPackage {
	var packages []upgrade.InstalledPackage
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) != 4 || fields[0] == "" || fields[2] == "not-installed" || fields[2] == "config-files" {
			continue
		}
		state := fields[2]
		if fields[3] == "reinstreq" {
			state = "half-installed"
		}
		packages = append(packages, upgrade.InstalledPackage{Name: fields[0], Version: fields[1], State: state})
	}
	return packages
}

// Broken are the packages that an interrupted transaction left half installed or half configured.
func (a *Apt) Broken(ctx context.Context) ([]string, error) {
	all, err := a.dpkgQuery(ctx, nil)
	if err != nil {
		return nil, err
	}
	var broken []string
	for _, p := range all {
		if p.State != StateInstalled {
			broken = append(broken, p.Name)
		}
	}
	return broken, nil
}

// Holds are the packages that are on hold.
func (a *Apt) Holds(ctx context.Context) ([]string, error) {
	result, err := a.run(ctx, queryTimeout, a.dpkg("--get-selections"))
	if err != nil {
		return nil, fmt.Errorf("reading the holds: %w", err)
	}
	return parseHolds(result.Stdout), nil
}

func parseHolds(output string) []string {
	var holds []string
	for line := range strings.Lines(output) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name, _, _ = strings.Cut(name, ":")
		if strings.TrimSpace(state) == "hold" && name != "" {
			holds = append(holds, name)
		}
	}
	return holds
}

// less compares two package versions the way dpkg does.
func (a *Apt) less(ctx context.Context, left, right string) (bool, error) {
	_, err := a.run(ctx, queryTimeout, []string{"dpkg", "--compare-versions", left, "lt", right})
	if err == nil {
		return true, nil
	}
	if command.ExitCode(err) == 1 {
		return false, nil
	}
	return false, fmt.Errorf("comparing package versions %s and %s: %w", left, right, err)
}

func (a *Apt) architecture(ctx context.Context) (string, error) {
	result, err := a.run(ctx, queryTimeout, []string{"dpkg", "--print-architecture"})
	if err != nil {
		return "", fmt.Errorf("asking dpkg for the architecture: %w", err)
	}
	return strings.TrimSpace(result.Stdout), nil
}
