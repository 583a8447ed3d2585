package rpm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// StateInstalled is the state of a package that is whole.
	StateInstalled = packagefile.StateInstalled
	// StateDuplicated is the state of a package that was cut off between the new version and the removal of the old one.
	StateDuplicated = "duplicated"
	// StateInterrupted is the state of a package whose transaction of ours did not end.
	StateInterrupted = "interrupted"
)

// header is one installed package as rpm has it.
type header struct{ name, arch, version string }

// nevra names exactly this one to rpm.
func (h header) nevra() string {
	version := h.version
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	return h.name + "-" + version + "." + h.arch
}

// errUnreadable is rpm's complaint about its database, at which it may end with exit code 0.
var errUnreadable = errors.New("the package database is damaged")

const headerFormat = `%{NAME}\t%{ARCH}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\n`

// installed are the headers of the named packages; of all of them without names.
func (r *RPM) installed(ctx context.Context, names ...string) ([]header, error) {
	args := []string{"-q", "--qf", headerFormat}
	if len(names) == 0 {
		args = append(args, "-a")
	}
	result, err := r.run(ctx, queryTimeout, r.rpm("rpm", append(append(args, "--"), names...)...))
	all := parseHeaders(result.Stdout)
	// rpm ends with the number of names that it does not know, and says so for each. What
	// it cannot read it passes over, and only says so.
	unreadable := strings.Contains(result.Stderr, "error:")
	switch {
	case err != nil && (len(names) == 0 || command.ExitCode(err) < 1 || unreadable):
		return nil, fmt.Errorf("asking rpm for packages: %w", err)
	case unreadable:
		return nil, fmt.Errorf("asking rpm for packages: %w: %s", errUnreadable, command.Tail(result.Stderr, 500))
	}
	if len(names) > 0 { // rpm takes name-version for a package too
		all = slices.DeleteFunc(all, func(h header) bool { return !slices.Contains(names, h.name) })
	}
	return all, nil
}

func parseHeaders(output string) []header {
	var all []header
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) == 3 {
			all = append(all, header{name: fields[0], arch: fields[1], version: strings.TrimPrefix(fields[2], "0:")})
		}
	}
	return all
}

// Query is the state of packages as rpm has it; one that is not installed is left out.
// Of several versions the newest is told: for packages that are kept side by side, such
// as kernels, that is the one that matters, and others are in the state duplicated.
func (r *RPM) Query(ctx context.Context, names []string) ([]upgrade.InstalledPackage, error) {
	possible := kind.Possible(names) // a name that rpm could not have is not installed, and hides no other
	if len(possible) == 0 {
		return nil, nil
	}
	found, err := r.installed(ctx, possible...)
	if err != nil {
		return nil, err
	}
	return states(found, r.interrupted()), nil
}

// states folds headers into one state for each name.
func states(found []header, interrupted []string) []upgrade.InstalledPackage {
	double := duplicated(found)
	var packages []upgrade.InstalledPackage
	for _, h := range found {
		p := upgrade.InstalledPackage{Name: h.name, Version: h.version, State: StateInstalled}
		switch {
		case slices.Contains(double, h.name):
			p.State = StateDuplicated
		case slices.Contains(interrupted, h.name):
			p.State = StateInterrupted
		}
		at := slices.IndexFunc(packages, func(o upgrade.InstalledPackage) bool { return o.Name == p.Name })
		switch {
		case at < 0:
			packages = append(packages, p)
		case upgrade.CompareRPM(p.Version, packages[at].Version) > 0:
			packages[at] = p
		}
	}
	return packages
}

// duplicated are the names of which one architecture has several versions, and should have one.
func duplicated(found []header) []string {
	versions := map[string]string{}
	var double []string
	for _, h := range found {
		key := h.name + "." + h.arch
		if other, ok := versions[key]; ok && other != h.version && !installOnly(h.name) && !slices.Contains(double, h.name) {
			double = append(double, h.name)
		}
		versions[key] = h.version
	}
	return double
}

// Broken are the packages that an interrupted transaction left half done, ours or another's.
func (r *RPM) Broken(ctx context.Context) ([]string, error) {
	found, err := r.installed(ctx)
	if err != nil {
		return nil, err
	}
	broken := append(duplicated(found), r.interrupted()...)
	slices.Sort(broken)
	return slices.Compact(broken), nil
}

// left are the changes that are not there yet.
func (r *RPM) left(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.PackageChange, error) {
	now, err := r.Query(ctx, packagefile.Names(changes))
	if err != nil {
		return nil, err
	}
	return packagefile.Left(changes, now), nil
}

// label is name and version of a package file.
func (r *RPM) label(ctx context.Context, path string) (name, version string, err error) {
	// Signatures are judged by the keys of the package's source, not by those that rpm has.
	result, err := r.run(ctx, queryTimeout, r.rpm("rpm", "-q", "-p", "--nosignature", "--qf", headerFormat, "--", path))
	if err != nil {
		return "", "", fmt.Errorf("reading the package file %s: %w", path, err)
	}
	found := parseHeaders(result.Stdout)
	if len(found) != 1 {
		return "", "", fmt.Errorf("reading the package file %s: no name and version in it", path)
	}
	return found[0].name, found[0].version, nil
}
