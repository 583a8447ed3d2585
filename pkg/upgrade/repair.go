package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// What does not run may be what keeps the rest down, and another version what mends it. A
// component that is known to be down is judged by what it was last; one that does not
// answer for another reason is unknown, and is never moved on a guess:
//
//	kubelet down, another version wished     the kubelet is repaired
//	kubelet down, at its wish                the rest goes on, the kubelet is a person's
//	kubelet down, a control plane to move    the runtime goes first, alone
//	runtime down, another patch wished       the runtime goes first, alone
//	runtime down, another minor wished       refused: nothing can stop what it left running
//	runtime down, at its wish                refused: a person has to look

// last is the version that a repair of the runtime starts from: what runs, or what is
// installed where nothing does.
func (r *RuntimeFacts) last() string {
	if r.Running == "" && r.Stopped {
		return r.Installed
	}
	return r.Running
}

// down says that the runtime is known not to run.
func (r *RuntimeFacts) down() bool { return r != nil && r.Running == "" && r.Stopped }

// down says that the kubelet is known not to run.
func (c *ComponentFacts) down() bool { return c != nil && c.Running == "" && !c.Active }

// stoppedRuntime is the version of an observed runtime that is known not to run.
func stoppedRuntime(seen *v1alpha1.ObservedRuntime) (Version, bool) {
	if seen == nil || seen.Installed == "" || runtimeKnown(runtimeSeen(seen)) {
		return Version{}, false
	}
	last, ok := ParseRuntime(seen.Installed)
	return last.Version, ok
}

// crossesStopped refuses to bring a runtime that is down to another minor.
func crossesStopped(who string, last, want Version) *Blocked {
	if last.SameMinor(want) {
		return nil
	}
	return wait(ReasonRuntimeStopped, "%s does not run, so what it left running cannot be stopped, and %s does not speak to what %s has started: bring it up first, with another release of %s in spec.versions.containerRuntime.version or by hand", who, want.Raw(), last.Raw(), last.Minor())
}

// runtimeMovable says why the runtime of a host cannot be brought to its wish.
func (h HostState) runtimeMovable(wish *v1alpha1.ContainerRuntime) *Blocked {
	seen := h.Versions.ContainerRuntime
	if runtimeKnown(runtimeSeen(seen)) {
		return nil
	}
	last, stopped := stoppedRuntime(seen)
	want, _ := ParseRelease(string(wish.Version))
	switch {
	case !stopped:
		return wait(ReasonVersionUnknown, "the container runtime of %s reports version %q, which is no version, and spec wants %s %s: nothing is planned on a guess; see that the runtime runs on the host and answers", h.Name, runtimeSeen(seen), wish.Name, wish.Version)
	case seen.Name != string(wish.Name): // refused by the host, which says how
		return nil
	case last.Equal(want):
		return wait(ReasonRuntimeStopped, "%s of %s does not run, and the one it has is %s already, as spec wants: see why it does not run (systemctl status %s on the host), or set spec.versions.containerRuntime.version to another release", wish.Name, h.Name, last.Raw(), runtimeUnitOf(seen.Name))
	}
	return crossesStopped(fmt.Sprintf("%s of %s", wish.Name, h.Name), last, want)
}

// repair takes the runtime of a host whose runtime is down, before anything else: neither
// kubelet nor control plane come up without it.
func (n *next) repair() (first bool, err *Blocked) {
	wish := n.wish.ContainerRuntime
	if _, stopped := stoppedRuntime(n.host.Versions.ContainerRuntime); !stopped || wish == nil || wish.Version == "" {
		return false, nil
	}
	if err := n.host.runtimeMovable(wish); err != nil {
		return true, err
	}
	n.target.ContainerRuntime = wish.DeepCopy()
	return true, nil
}

// mend goes on with what may be what keeps a kubelet down that no other version of it
// mends. Where its control plane is to move that is the runtime, alone.
func (n *next) mend(why *Blocked, hop Version) *Blocked {
	n.held = why
	if !hop.Known() {
		return nil
	}
	wish := n.wish.ContainerRuntime
	if wish == nil || wish.Version == "" || runtimeAt(n.host.Versions.ContainerRuntime, wish) || n.host.runtimeMovable(wish) != nil {
		return why
	}
	n.target, n.role, n.last = v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: wish.DeepCopy()}}, "", false
	return nil
}

// checkDown refuses what cannot be done with a kubelet or a runtime that is down.
func (p *planner) checkDown() error {
	k, r := p.in.Facts.Kubelet, p.in.Facts.Runtime
	switch {
	case p.want.controlPlaneChanges && k.down():
		return wait(ReasonVersionUnknown, "the kubelet of this host does not run, and no control plane goes to %s without it: see why it does not run (journalctl -u kubelet), or repair it first with spec.versions.kubelet alone", p.want.controlPlane.Raw())
	case !r.down():
		return nil
	case p.want.controlPlaneChanges, p.want.kubeletChanges && !p.want.runtimeChanges:
		return wait(ReasonRuntimeStopped, "%s does not run on this host, and without it neither a kubelet nor a control plane comes up: see why it does not run (systemctl status %s), or repair it first with another release in spec.versions.containerRuntime.version", r.Name, p.runtimeUnit())
	}
	return nil
}

func runtimeUnitOf(name string) string {
	if name == string(v1alpha1.RuntimeCRIO) {
		return unitCRIO
	}
	return unitContainerd
}

// HalfInstalled are the packages that a broken transaction left behind: they are neither there nor gone.
func (f *Facts) HalfInstalled() []string {
	broken := slices.Clone(f.Packages.Broken)
	for _, pkg := range f.Packages.Installed {
		if pkg.Version != "" && !pkg.installed() && !slices.Contains(broken, pkg.Name) {
			broken = append(broken, pkg.Name)
		}
	}
	return broken
}

// HalfInstalledMessage says what is half installed and how to mend it; "" when nothing is.
func HalfInstalledMessage(packages []string) string {
	if len(packages) == 0 {
		return ""
	}
	return fmt.Sprintf("packages are half installed on this host: %s; finish them (on apt hosts: dpkg --configure -a; on dnf hosts: dnf remove --duplicates), then the plan goes on by itself", strings.Join(packages, ", "))
}

// packagesBroken says what is half installed on the host of a Machine: by its facts, else by what it reports.
func packagesBroken(m *v1alpha1.Machine, facts *Facts) string {
	if facts != nil {
		return HalfInstalledMessage(facts.HalfInstalled())
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPackagesBroken); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// causedBy names first the packages that are half installed where something is refused
// that may pass: a daemon in the middle of its transaction does not answer because of that.
func causedBy(broken string, blocked *Blocked) *Blocked {
	if broken == "" || blocked.Terminal || blocked.Reason != ReasonVersionUnknown && blocked.Reason != ReasonRuntimeStopped {
		return blocked
	}
	return wait(ReasonPackageDBBroken, "%s; as long as they are not: %s", strings.TrimSuffix(broken, "."), blocked.Message)
}
