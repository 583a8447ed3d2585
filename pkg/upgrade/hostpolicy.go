package upgrade

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/hostpolicy"
)

// PolicyFacts is what the owner of the host allows.
type PolicyFacts struct {
	Path string `json:"path"`
	// Broken says why the file cannot be gone by. It then allows nothing.
	Broken string             `json:"broken,omitempty"`
	Rules  *hostpolicy.Policy `json:"rules,omitempty"`
}

// rules are those of the policy; without a file they are the zero value.
func (f *PolicyFacts) rules() hostpolicy.Policy {
	if f == nil || f.Rules == nil {
		return hostpolicy.Policy{}
	}
	return *f.Rules
}

// unreadable refuses everything under a policy that is not understood. It passes when the owner has mended it.
func (f *PolicyFacts) unreadable() *Blocked {
	if f == nil || f.Broken == "" && f.Rules != nil {
		return nil
	}
	return wait(ReasonHostPolicy, "%s of this host cannot be gone by, so nothing is done: %s; correct the file, or move it away", f.Path, firstOf(f.Broken, "it says nothing"))
}

// checkPolicy refuses what the owner of the host does not allow in a spec, before anything is
// looked up for it. A plan is judged once more, as a whole.
func (p *planner) checkPolicy() error {
	if blocked := p.in.Facts.Policy.unreadable(); blocked != nil {
		return blocked
	}
	rules := p.in.Facts.Policy.rules()
	var out []*hostpolicy.Violation
	for _, pkg := range p.osPackagesSpec() {
		out = append(out, rules.Package(pkg.Name))
	}
	if h := p.in.Spec.Hooks; h != nil {
		for _, name := range slices.Concat(h.PreApply, h.PostApply) {
			out = append(out, rules.Hook(string(name)))
		}
	}
	if p.sourcesKnown() {
		for _, s := range p.in.Spec.PackageSources {
			uri := s.URI
			if minor := sourceMinor(p.in.Facts, p.in.Assignment.Target, s.Name); minor != v1alpha1.Unknown {
				uri = strings.ReplaceAll(uri, minorPlaceholder, minor)
			}
			out = append(out, rules.Source(sourceWish(p.in.Facts.Packages.Sources, s.Name, "", uri, s.SignedBy)))
		}
	}
	return outside(out)
}

// sourcesKnown says that the sources of the host were looked at: an estimate may know of none.
func (p *planner) sourcesKnown() bool {
	return (!p.in.Estimate || p.in.Facts.Packages.Manager != "") && p.probeFailed("packages.sources") == "" && p.probeFailed("packages") == ""
}

// withinPolicy judges the finished plan as the executor will.
func (p *planner) withinPolicy() error {
	if !p.sourcesKnown() {
		return nil
	}
	return JudgePlan(p.in.Facts, Plan{Steps: p.frame()})
}

// JudgePlan says whether the owner of a host allows a plan: the planner asks before anything
// is staged, and the executor once more, by what it has read itself.
func JudgePlan(facts Facts, plan Plan) error {
	if blocked := facts.Policy.unreadable(); blocked != nil {
		return blocked
	}
	rules := facts.Policy.rules()
	var out []*hostpolicy.Violation
	for _, s := range plan.Steps {
		out = append(out, rules.Step(string(s.Kind)))
		switch s.Kind {
		case StepInstallPackages, StepUnholdPackages:
			out = append(out, packageViolations(rules, s, facts.OS.Kernel)...)
		case StepSwitchSource:
			if c := s.Source; c != nil && c.To != "" && (c.To != c.From || c.SignedBy != "") {
				out = append(out, rules.Source(sourceWish(facts.Packages.Sources, c.Name, c.File, c.To, c.SignedBy)))
			}
		case StepRunHook:
			out = append(out, rules.Hook(s.Hook))
		case StepWriteConfig:
			if f := s.File; f != nil && !f.Remove && path.Dir(f.Path) == KubeletDropInDir {
				out = append(out, dropInViolations(rules, f.Content)...)
			}
		}
	}
	return outside(out)
}

// packageViolations are the packages of a step that may not be touched, or not be removed.
func packageViolations(rules hostpolicy.Policy, s Step, kernel string) []*hostpolicy.Violation {
	var out []*hostpolicy.Violation
	for _, c := range s.Packages {
		out = append(out, rules.Package(c.Name))
		if s.Kind == StepInstallPackages && c.To == "" && isProtected(c.Name, kernel) {
			out = append(out, rules.Removal(c.Name))
		}
	}
	return out
}

// dropInViolations are the refused fields of a drop-in file; one that is no YAML is refused elsewhere.
func dropInViolations(rules hostpolicy.Policy, content string) []*hostpolicy.Violation {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(content), &config); err != nil {
		return nil
	}
	var out []*hostpolicy.Violation
	for _, name := range rules.KubeletFields(config) {
		out = append(out, rules.KubeletField(name))
	}
	return out
}

// outside is the refusal of everything that is outside, each thing once.
func outside(violations []*hostpolicy.Violation) error {
	var said []string
	for _, v := range violations {
		if v != nil && !slices.Contains(said, v.String()) {
			said = append(said, v.String())
		}
	}
	if len(said) == 0 {
		return nil
	}
	return refuse(ReasonHostPolicy, "%s", strings.Join(said, "; "))
}

// sourceWish compares a source with those that the host has. file is "" for one that is not written yet.
func sourceWish(sources []SourceFacts, name, file, uri, signedBy string) hostpolicy.SourceWish {
	w := hostpolicy.SourceWish{Name: name, URI: uri, SignedBy: signedBy, New: true}
	for _, have := range sources {
		configured := sameButMinor(have.URI, uri)
		base := path.Base(have.File)
		named := file != "" && file == have.File || strings.TrimSuffix(base, path.Ext(base)) == name || offers(have, sourcePackages[name])
		w.Configured = w.Configured || configured
		w.New = w.New && !configured && !named
		if configured || named {
			w.KeyKnown = w.KeyKnown || have.SignedBy == "" || have.SignedBy == signedBy || isKeyring(have.SignedBy, signedBy)
		}
	}
	return w
}

// sameButMinor takes the repositories of two minors for one source: a host that has one follows it.
func sameButMinor(a, b string) bool {
	return sameURI(withoutMinors(a), withoutMinors(b))
}

func withoutMinors(uri string) string {
	segments := strings.Split(uri, "/")
	for _, at := range minorsOf(uri) {
		segments[at] = minorPlaceholder
	}
	return strings.Join(segments, "/")
}

// allowedPackage says that the policy leaves a package to Refit.
func (p *planner) allowedPackage(name string) bool {
	return p.in.Facts.Policy.rules().Package(name) == nil
}

// securityUpdatesOutside tells of updates that the owner's policy keeps away.
func securityUpdatesOutside(p *planner) []Finding {
	var names []string
	for _, c := range p.in.Security {
		if !p.allowedPackage(c.Name) {
			names = append(names, fmt.Sprintf("%s %s", c.Name, c.Version))
		}
	}
	if len(names) == 0 || !WantsSecurityUpdates(p.in.Spec) {
		return nil
	}
	return []Finding{warning(FindingHostPolicy, "security updates for packages outside packages.allow and packages.deny of this host's policy are left out: %s; have the host's owner allow them in %s", nameSome(names), hostpolicy.Path)}
}

// mayRemove says that a package may be wished absent on a host.
func (p *planner) mayRemove(pkg v1alpha1.Package) bool {
	return !isProtected(pkg.Name, p.in.Facts.OS.Kernel) || p.in.Facts.Policy.rules().Removes(pkg.Name)
}
