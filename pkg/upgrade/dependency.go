package upgrade

import (
	"regexp"
	"slices"
	"strings"
)

// dependencyShape is one alternative of a Debian dependency: name[:arch] [(relation version)].
var dependencyShape = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)?(?:\s*\(\s*(<<|<=|=|>=|>>)\s*([^\s)]+)\s*\))?$`)

// dependency is one alternative: a package, and what its version must be.
type dependency struct{ name, relation, version string }

// parseDependency reads a clause with its alternatives. Clauses that are not
// understood give none: the real solver judges them when the plan is staged.
func parseDependency(clause string) []dependency {
	var alternatives []dependency
	for part := range strings.SplitSeq(clause, "|") {
		m := dependencyShape.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil
		}
		alternatives = append(alternatives, dependency{name: m[1], relation: m[2], version: m[3]})
	}
	return alternatives
}

func (d dependency) satisfiedBy(order Ordering, version string) bool {
	if version == "" {
		return false
	}
	if d.relation == "" {
		return true
	}
	c := order(version, d.version)
	switch d.relation {
	case "<<":
		return c < 0
	case "<=":
		return c <= 0
	case "=":
		return c == 0
	case ">=":
		return c >= 0
	}
	return c > 0
}

// satisfies is satisfiedBy as the host's package manager has it: to rpm a version
// without a release means every release of it, to dpkg a revision is part of the version.
func (p *planner) satisfies(d dependency, version string) bool {
	if p.in.Facts.Packages.Manager != "apt" && !strings.Contains(d.version, "-") {
		version, _, _ = strings.Cut(version, "-")
	}
	return d.satisfiedBy(p.order, version)
}

// Helpers are packages that come along only because a package of Kubernetes or of
// the runtime depends on them. No others are ever added to a plan.
var Helpers = []string{packageCRITools, packageKubernetesCNI, packageRunc}

// addHelpers adds the helpers that the chosen packages need newer than what is installed.
func (p *planner) addHelpers(changes []PackageChange) ([]PackageChange, error) {
	for i := 0; i < len(changes); i++ {
		for _, clause := range p.dependsOf(changes[i]) {
			helper, err := p.helperFor(changes[i], parseDependency(clause), changes)
			if err != nil {
				return nil, err
			}
			if helper != nil {
				changes = append(changes, *helper)
			}
		}
	}
	return changes, nil
}

// helperFor returns the change that satisfies a clause, or nil when nothing is to be done about it.
func (p *planner) helperFor(dependent PackageChange, alternatives []dependency, changes []PackageChange) (*PackageChange, error) {
	var helpers []dependency
	for _, d := range alternatives {
		if p.satisfies(d, p.versionAfter(d.name, changes)) {
			return nil, nil
		}
		if slices.Contains(Helpers, d.name) {
			helpers = append(helpers, d)
		}
	}
	if len(helpers) == 0 {
		return nil, nil
	}
	for _, d := range helpers {
		if c, ok := p.bestFor(d); ok {
			return p.helperChange(dependent, c)
		}
	}
	d := helpers[0]
	return nil, refuse(ReasonDependencyUnsolvable, "%s %s depends on %s %s %s, which no repository of this host offers: add the repository that has it to spec.packageSources, then retry",
		dependent.Name, dependent.To, d.name, d.relation, d.version)
}

// helperChange installs a helper, unless the host's owner keeps it where it is.
func (p *planner) helperChange(dependent PackageChange, c Candidate) (*PackageChange, error) {
	if slices.Contains(p.in.Facts.Packages.Holds, c.Name) {
		return nil, refuse(ReasonHeldByOwner, "%s %s needs %s %s, but %s is on hold on this host and not in spec: release it with `%s %s`, or name it in spec.os.packages, then retry",
			dependent.Name, dependent.To, c.Name, c.Version, c.Name, p.unhold(), c.Name)
	}
	change := p.change(c)
	return &change, nil
}

// unhold is how a person frees a package on this host.
func (p *planner) unhold() string {
	switch p.in.Facts.Packages.Manager {
	case "dnf":
		return "dnf versionlock delete"
	case "zypper":
		return "zypper removelock"
	}
	return "apt-mark unhold"
}

// versionAfter is the version of a package once the changes are made; "" when it is absent or gone.
func (p *planner) versionAfter(name string, changes []PackageChange) string {
	for _, c := range changes {
		if c.Name == name {
			return c.To
		}
	}
	return p.installed[name].Version
}

func (p *planner) bestFor(d dependency) (Candidate, bool) {
	var fit []Candidate
	for _, c := range p.in.Candidates {
		if c.Name == d.name && p.satisfies(d, c.Version) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return Candidate{}, false
	}
	return newest(p.order, fit, ""), true
}

func (p *planner) dependsOf(change PackageChange) []string {
	for _, c := range p.in.Candidates {
		if c.Name == change.Name && c.Version == change.To && (change.SHA256 == "" || c.SHA256 == change.SHA256) {
			return c.Depends
		}
	}
	return nil
}
