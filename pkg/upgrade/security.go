package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// WantsSecurityUpdates says whether a spec asks for the distribution's security updates.
func WantsSecurityUpdates(spec v1alpha1.MachineSpec) bool {
	return spec.OS != nil && spec.OS.SecurityUpdates == v1alpha1.SecurityUpdatesApply
}

// SecurityRequest asks a host for its security updates, apart from what has a field or an
// entry of its own in spec: that moves when spec says so, and never by this lane.
func SecurityRequest(spec v1alpha1.MachineSpec) CandidateRequest {
	apart := ManagedPackages()
	if spec.OS != nil {
		for _, p := range spec.OS.Packages {
			apart = append(apart, p.Name)
		}
	}
	slices.Sort(apart)
	return CandidateRequest{Security: true, Packages: slices.Compact(apart)}
}

// SecurityLookupFailed tells of a plan that goes on without the updates, since nobody knows them.
func SecurityLookupFailed(err error) Finding {
	return warning(FindingSecurityUpdatesUnknown, "the security updates of this host could not be looked up, and are not part of this plan: %v", err)
}

// applicable are the security updates that may be applied; those that are on hold, or that
// were not asked for, are not.
func (p *planner) applicable() []Candidate {
	if !WantsSecurityUpdates(p.in.Spec) || !p.in.Assignment.Target.OS {
		return nil
	}
	apart := SecurityRequest(p.in.Spec).Packages
	var out []Candidate
	for _, c := range p.in.Security {
		if !c.Held && !slices.Contains(apart, c.Name) && p.allowedPackage(c.Name) {
			out = append(out, c)
		}
	}
	return out
}

func (p *planner) securityPending() bool { return len(p.applicable()) > 0 }

// securityChanges are exact versions with their digests, as every change of a plan.
func (p *planner) securityChanges() []PackageChange {
	var changes []PackageChange
	for _, c := range p.applicable() {
		changes = append(changes, PackageChange{
			Name: c.Name, From: c.From, To: c.Version, File: c.SHA256 + p.fileEnding(), SHA256: c.SHA256, Size: c.Size, URI: c.URI(),
		})
	}
	return changes
}

// heldSecurityUpdates tells of updates that the owner's holds keep away. No hold is lifted for this lane.
func heldSecurityUpdates(p *planner) []Finding {
	var names []string
	for _, c := range p.in.Security {
		if c.Held {
			names = append(names, c.Name+" "+c.Version)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{warning(FindingSecurityUpdateHeld, "security updates for packages on hold are left out: %s; release the holds, or name the packages in spec.os.packages", nameSome(names))}
}

// PendingSecurityUpdates are those of the updates that a host still does not have, in what was
// found last: one that somebody has installed since is none. What is not looked at counts as it was.
func PendingSecurityUpdates(updates []Candidate, facts *Facts) (pending, held []Candidate) {
	order, installed := Ordering(equalOnly), map[string]InstalledPackage{}
	if facts != nil {
		if o := OrderingOf(facts.Packages.Manager); o != nil {
			order = o
		}
		for _, p := range facts.Packages.Installed {
			installed[p.Name] = p
		}
	}
	for _, c := range updates {
		have, known := installed[c.Name]
		switch {
		case c.From == "" || known && order(have.Version, c.Version) >= 0:
		case c.Held || facts != nil && facts.Policy.rules().Package(c.Name) != nil:
			held = append(held, c)
		default:
			pending = append(pending, c)
		}
	}
	return pending, held
}

// NameUpdates lists updates for a message.
func NameUpdates(updates []Candidate) string {
	names := make([]string, 0, len(updates))
	for _, c := range updates {
		names = append(names, fmt.Sprintf("%s %s to %s", c.Name, c.From, c.Version))
	}
	return nameSome(names)
}

// nameSome lists the first of many.
func nameSome(names []string) string {
	if len(names) <= shownHosts {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shownHosts], ", "), len(names)-shownHosts)
}

// pendingSecurity says what the host's condition says, where spec wants the updates. Not
// looked up is not outdated.
func pendingSecurity(spec v1alpha1.MachineSpec, status v1alpha1.MachineStatus) []string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSecurityUpdatesPending)
	if !WantsSecurityUpdates(spec) || c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return []string{c.Message}
}

// noteSecurity says that a plan that was made elsewhere knows of no security updates.
func (p *planner) noteSecurity() {
	if WantsSecurityUpdates(p.in.Spec) && p.in.Assignment.Target.OS && !p.in.SecurityKnown {
		p.find(info(FindingSecurityUpdatesUnknown, "spec.os.securityUpdates is Apply: which updates there are is looked up when the host plans, and they are part of that plan"))
	}
}
