package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Kept is what Refit has left on a host, by its own records, and keeps as it is: packages that
// it put on hold, and package sources that it wrote for spec.packageSources.
type Kept struct {
	Holds   []string
	Sources []string
}

// Take adds what one successful operation left, in the order of its steps.
func (k *Kept) Take(steps []Step) {
	for _, s := range steps {
		switch {
		case s.Kind == StepHoldPackages:
			for _, p := range s.Packages {
				k.Holds = with(k.Holds, p.Name)
			}
		case s.Kind == StepInstallPackages:
			for _, p := range s.Packages {
				if p.To == "" {
					k.Holds = without(k.Holds, p.Name)
				}
			}
		case s.Kind == StepSwitchSource && s.Source != nil && s.Source.To == "":
			k.Sources = without(k.Sources, s.Source.Name)
		case s.Kind == StepSwitchSource && s.Source != nil:
			k.Sources = with(k.Sources, s.Source.Name)
		}
	}
}

func with(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

// lostHolds are the packages that Refit left on hold and that are on hold no more. One that a
// person took off is put back like anything else that left its spec: under a grant.
func (k Kept) lostHolds(f Facts) []string {
	var out []string
	for _, name := range k.Holds {
		if isInstalled(f, name) && !slices.Contains(f.Packages.Holds, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// changedSources are the sources of spec that Refit wrote and that are not as it wrote them, as the
// changes that put them back. {minor} in one may stand for that of any Kubernetes package that is
// installed: kubeadm moves before the kubelet.
func (k Kept) changedSources(f Facts, spec v1alpha1.MachineSpec) []SourceChange {
	var kept []v1alpha1.PackageSource
	for _, s := range spec.PackageSources {
		if slices.Contains(k.Sources, s.Name) {
			kept = append(kept, s)
		}
	}
	var first []SourceChange
	for i, minor := range installedMinors(f) {
		changes := changesFor(f, kept, minor)
		if len(changes) == 0 {
			return nil
		}
		if i == 0 {
			first = changes
		}
	}
	return first
}

func changesFor(f Facts, sources []v1alpha1.PackageSource, minor string) []SourceChange {
	s := &sourceSet{facts: f}
	for _, src := range f.Packages.Sources {
		s.now = append(s.now, hostSource{facts: src, uri: src.URI})
	}
	minorOf := func(name string) string {
		if name == SourceCRIO {
			return sourceMinor(f, v1alpha1.Target{}, name)
		}
		return minor
	}
	if err := s.applySpec(sources, minorOf); err != nil {
		return nil // said where packages move
	}
	return s.changes()
}

// installedMinors are those of the Kubernetes packages that are installed; Unknown stands for none.
func installedMinors(f Facts) []string {
	var out []string
	for _, name := range []string{packageKubeadm, packageKubelet, packageKubectl} {
		for _, p := range f.Packages.Installed {
			if p.Name == name && p.installed() {
				out = with(out, packageUpstream(p.Version).Minor())
			}
		}
	}
	if len(out) == 0 {
		return []string{v1alpha1.Unknown}
	}
	return out
}

// Unmet says, for people, what of it is not as Refit left it: what was found, and what was expected.
func (k Kept) Unmet(f Facts, spec v1alpha1.MachineSpec) []string {
	var out []string
	for _, c := range k.changedSources(f, spec) {
		out = append(out, fmt.Sprintf("package source %s in %s is %s, wanted %s", c.Name, c.File, firstOf(c.From, "not there"), sourceText(c)))
	}
	if lost := k.lostHolds(f); len(lost) > 0 {
		out = append(out, fmt.Sprintf("%s not on hold, wanted as Refit left it", strings.Join(lost, ", ")))
	}
	return out
}

func sourceText(c SourceChange) string {
	text := c.To
	if c.Was != nil {
		text = strings.Join(append(append([]string{text}, c.Suites...), c.Components...), " ") + " signed by " + c.SignedBy
	}
	return text
}

// keptPending says whether something of it is to be put back on this hop.
func (p *planner) keptPending() bool {
	return p.in.Assignment.Target.OS && len(p.in.Kept.Unmet(p.in.Facts, p.in.Spec)) > 0
}

// keep puts back what Refit has left on the host, where no transaction does so anyhow.
func (p *planner) keep() error {
	if !p.in.Assignment.Target.OS {
		return nil
	}
	if !p.packagesMove() {
		changes := p.in.Kept.changedSources(p.in.Facts, p.in.Spec)
		for i := range changes {
			p.add(Step{Kind: StepSwitchSource, Source: &changes[i]})
		}
	}
	var hold []PackageChange
	for _, name := range p.in.Kept.lostHolds(p.in.Facts) {
		if p.installed[name].Version != "" { // not one that this plan removes
			hold = append(hold, PackageChange{Name: name})
		}
	}
	if len(hold) > 0 {
		p.add(Step{Kind: StepHoldPackages, Packages: hold})
	}
	return nil
}
