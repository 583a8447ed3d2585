package upgrade

import (
	"fmt"
	"slices"
)

// awaitControlPlane holds everything while the control plane is on its way, so that the
// machine is drained once; a control plane that will not move holds only the kubelet.
func (n *next) awaitControlPlane(wish, oldest Version) *Blocked {
	blocked := wait(ReasonWaitingForControlPlane, "kubelet %s on %s waits for the control plane, whose oldest API server runs %s: no kubelet may be newer", wish.Raw(), n.host.Name, oldest.Raw())
	if n.coming(wish) {
		return blocked
	}
	if stuck := n.sidelined(wish); stuck != "" {
		blocked.Message += fmt.Sprintf("; %s is to go there but is paused, failed or out of service: see why on that machine and mend it", stuck)
	} else if stuck := n.standing(wish); stuck != "" {
		blocked.Message += fmt.Sprintf("; %s is to go there and cannot: see why on that machine and mend it", stuck)
	} else if strange := n.roleless(wish); strange != "" {
		blocked.Message += fmt.Sprintf("; %s runs an API server, but its spec.roles has no ControlPlane: add it, and set its spec.versions.controlPlane", strange)
	} else {
		blocked.Message += "; no control-plane machine is on its way there, set spec.versions.controlPlane first"
	}
	n.held = blocked
	return nil
}

// coming says whether some other control-plane machine is on its way to a version, or past it.
func (n *next) coming(version Version) bool {
	return slices.ContainsFunc(n.view.control, func(h HostState) bool {
		return !h.Sidelined && n.goesTo(h, version) && !n.view.stands(h)
	})
}

// sidelined names the other control-plane machine that would be on its way to a version, were it not sidelined.
func (n *next) sidelined(version Version) string {
	for _, h := range n.view.control {
		if h.Sidelined && n.goesTo(h, version) {
			return h.Name
		}
	}
	return ""
}

// standing names the other control-plane machine that is to go to a version and cannot, until a person does something.
func (n *next) standing(version Version) string {
	for _, h := range n.view.control {
		if n.goesTo(h, version) {
			return h.Name
		}
	}
	return ""
}

// roleless names a machine whose API server is older than a version and is moved by nobody, for want of its role.
func (n *next) roleless(version Version) string {
	for _, h := range n.view.control {
		if h.Managed && !h.IsControlPlane() && n.view.api[h.Name].LessThan(version) {
			return h.Name
		}
	}
	return ""
}

// goesTo says that another control-plane machine is older than a version and wishes to be
// there, or past it. Where a minor lies between, any patch of the version's minor does:
// that is all that its kubelet waits for.
func (n *next) goesTo(h HostState, version Version) bool {
	wish, ok := ParseKubernetes(string(h.Wish.ControlPlane))
	now := n.view.api[h.Name]
	if !ok || h.Name == n.host.Name || !h.Managed || !now.LessThan(version) {
		return false
	}
	return !wish.LessThan(version) || version.MinorsAhead(now) > 0 && wish.MinorsAhead(version) >= 0
}

// stands says that a machine does not take its next hop of the control plane until a person does
// something: it is refused for good, or what it waits for is not on its way itself.
func (v *View) stands(h HostState) bool {
	if v.refused(h) {
		return true
	}
	hop, err := v.wishedHop(h)
	if err != nil {
		return false
	}
	for _, name := range v.peersBehind(h.Name, hop) {
		if i := slices.IndexFunc(v.control, func(p HostState) bool { return p.Name == name }); !v.moves(v.control[i]) {
			return true
		}
	}
	lagging := v.lagging(hop)
	return len(lagging) > 0 && hop.MinorsAhead(v.api[h.Name]) > 0 && slices.ContainsFunc(v.fleet.Hosts, func(k HostState) bool {
		return slices.Contains(lagging, k.Name) && v.staysBehind(k, hop)
	})
}

// refused says that a machine is refused for good, by what its control plane is to become.
func (v *View) refused(h HostState) bool {
	hop, err := v.wishedHop(h)
	if err != nil {
		return err.Terminal
	}
	return v.belowPeer(h, hop) != nil
}

// moves says that a machine has a hop of the control plane before it.
func (v *View) moves(h HostState) bool {
	hop, err := v.wishedHop(h)
	return err == nil && hop.Known() && !h.Sidelined
}

// staysBehind says that no window of a host brings its kubelet near enough for a hop.
func (v *View) staysBehind(h HostState, hop Version) bool {
	wish, ok := ParseKubernetes(string(h.Wish.Kubelet))
	return !h.Managed || h.Sidelined || !ok || tooFarBehind(wish, hop) || v.refused(h)
}
