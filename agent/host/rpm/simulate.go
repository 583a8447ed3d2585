package rpm

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// upgradeArgs bring the given files in, and nothing else: rpm has no repository to take
// more from. Versions may go down too; a package that is there already, of a transaction
// that was cut off, is brought in again, so that its scripts have run to their end.
// A configuration file that the host changed is kept where its package says so; see
// config.go for those that do not.
func upgradeArgs(changes []upgrade.PackageChange, dir string) []string {
	args := []string{"-U", "--oldpackage", "--replacepkgs"}
	operands := []string{"--"}
	for _, c := range changes {
		if c.To != "" {
			operands = append(operands, filepath.Join(dir, c.File))
		}
	}
	return append(args, operands...)
}

func removals(changes []upgrade.PackageChange) []string {
	var names []string
	for _, c := range changes {
		if c.To == "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// simulate refuses a transaction that rpm cannot do, or that would do more than was
// asked for. rpm never installs more than it is given; but packages may obsolete others.
func (r *RPM) simulate(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	for _, argv := range r.transactions(changes, dir) {
		result, err := r.run(ctx, repairTimeout, append(argv[:2:2], append([]string{"--test", "-vv"}, argv[2:]...)...))
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("simulating the transaction: %w", err)
		}
		if err := erased(result.Output(), changes); err != nil {
			return err
		}
		if err != nil {
			return refuse("TransactionRefused", "rpm cannot do it: %s", solverText(result))
		}
	}
	return r.obsoleted(ctx, changes, dir)
}

// transactions are the runs of rpm that make the changes: it cannot bring in and take away in one.
func (r *RPM) transactions(changes []upgrade.PackageChange, dir string) [][]string {
	var all [][]string
	if !onlyRemovals(changes) {
		all = append(all, r.rpmFirst(upgradeArgs(changes, dir)))
	}
	if names := removals(changes); len(names) > 0 {
		all = append(all, r.rpmFirst(append([]string{"-e", "--"}, names...)))
	}
	return all
}

// rpmFirst is rpm with its mode as the first argument, so that others can be put after it.
func (r *RPM) rpmFirst(args []string) []string {
	rest := r.rpm("rpm")[1:]
	return append(append([]string{"rpm", args[0]}, rest...), args[1:]...)
}

func onlyRemovals(changes []upgrade.PackageChange) bool {
	return len(removals(changes)) == len(changes)
}

// solverText is what rpm complains of, without what -vv tells besides.
func solverText(r command.Result) string {
	var kept []string
	for line := range strings.Lines(r.Output()) {
		if line = strings.TrimSpace(line); line != "" && !debugLine.MatchString(line) {
			kept = append(kept, line)
		}
	}
	return command.Tail(strings.Join(kept, " "), 1200)
}

var debugLine = regexp.MustCompile(`^(D:\s|%% |(Verifying|Preparing) packages|(Header|Payload|MD5) .*: |ufdio: |rpm: (RPM should not|However assuming))`)

// erasedLine is how rpm tells what a transaction takes away: in the order of its elements.
var erasedLine = regexp.MustCompile(`^D:\s+\d+\s+\d+\s+\d+\s+\d+\s+-(\S+)$`)

// erased refuses a transaction that takes a package away that no change names.
func erased(output string, changes []upgrade.PackageChange) error {
	for line := range strings.Lines(output) {
		m := erasedLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name := nameOf(m[1])
		if !slices.ContainsFunc(changes, func(c upgrade.PackageChange) bool { return c.Name == name }) {
			return refuse("WouldRemove", "rpm would remove %s, which is not part of the plan", name)
		}
	}
	return nil
}

// nameOf takes version, release and architecture off.
func nameOf(nevra string) string {
	for range 2 {
		if i := strings.LastIndexByte(nevra, '-'); i > 0 {
			nevra = nevra[:i]
		}
	}
	return nevra
}

// obsoleted asks the package files themselves what they take the place of: that is told
// by every version of rpm in the same way.
func (r *RPM) obsoleted(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		format := `[%{OBSOLETENAME}\t%{OBSOLETEFLAGS:depflags}\t%{OBSOLETEVERSION}\n]`
		result, err := r.run(ctx, queryTimeout, r.rpm("rpm", "-q", "-p", "--nosignature", "--qf", format, "--", filepath.Join(dir, c.File)))
		if err != nil {
			return fmt.Errorf("asking %s %s what it obsoletes: %w", c.Name, c.To, err)
		}
		for _, o := range parseObsoletes(result.Stdout) {
			if slices.Contains(packagefile.Names(changes), o.name) {
				continue
			}
			now, err := r.installed(ctx, o.name)
			if err != nil {
				return err
			}
			for _, h := range now {
				if within(h.version, o.relation, o.version) {
					return refuse("WouldRemove", "%s %s takes the place of %s %s and would remove it, which is not part of the plan", c.Name, c.To, h.name, h.version)
				}
			}
		}
	}
	return nil
}

// obsolete is what a package says that it takes the place of.
type obsolete struct{ name, relation, version string }

// parseObsoletes leaves out what is no name of a package, such as a file.
func parseObsoletes(output string) []obsolete {
	var all []obsolete
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) == 3 && kind.CheckNames(fields[:1]) == nil {
			all = append(all, obsolete{name: fields[0], relation: strings.TrimSpace(fields[1]), version: fields[2]})
		}
	}
	return all
}

func within(have, relation, version string) bool {
	if version == "" || relation == "" {
		return true
	}
	if !strings.Contains(version, "-") { // a version without a release means all of them
		have, _, _ = strings.Cut(have, "-")
	}
	c := upgrade.CompareRPM(have, version)
	return c < 0 && strings.Contains(relation, "<") || c > 0 && strings.Contains(relation, ">") || c == 0 && strings.Contains(relation, "=")
}
