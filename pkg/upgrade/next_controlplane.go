package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// controlPlane adds the machine's next control-plane hop, and returns it.
func (n *next) controlPlane() (Version, *Blocked) {
	if n.wish.ControlPlane == "" || !n.host.IsControlPlane() {
		return Version{}, nil
	}
	wish, ok := ParseKubernetes(string(n.wish.ControlPlane))
	if !ok {
		return wish, refuse(ReasonVersionInvalid, "spec.versions.controlPlane of %s is %q, which is no Kubernetes version: write it like v1.37.2", n.host.Name, n.wish.ControlPlane)
	}
	hop, err := n.view.hopOf(n.host, wish)
	if err != nil || !hop.Known() {
		return Version{}, err
	}
	if err := n.view.kubeletHolds(n.host, n.wish); err != nil {
		return Version{}, err
	}
	return n.takeHop(hop, wish)
}

// takeHop judges a control-plane hop and takes it into the target.
func (n *next) takeHop(hop, wish Version) (Version, *Blocked) {
	if err := n.view.allowControlPlane(n.host, hop); err != nil {
		n.last = false
		return Version{}, err
	}
	role, err := n.view.kubeadmRole(n.host, hop, wish)
	if err != nil {
		return Version{}, err
	}
	n.role, n.target.ControlPlane = role, v1alpha1.KubernetesVersion(hop.String())
	n.last = hop.Equal(wish)
	if n.last {
		n.target.ControlPlane = n.wish.ControlPlane
	}
	return hop, nil
}

// hopOf is the version of a host's next control-plane hop, unknown where its wish is met. It
// asks nothing of the fleet but what is passed through: whether it may go there is judged apart.
func (v *View) hopOf(host HostState, wish Version) (Version, *Blocked) {
	now, err := host.apiServer()
	if err != nil {
		return Version{}, err
	}
	if controlPlaneAt(host.control(), wish) {
		return Version{}, nil
	}
	if wish.LessThan(now) {
		return Version{}, refuse(ReasonDowngradeRefused, "the API server of %s runs %s and spec wants %s: a control plane never goes back; set spec.versions.controlPlane to %s or newer", host.Name, now.Raw(), wish.Raw(), now)
	}
	if err := host.componentsUnknown(now); err != nil {
		return Version{}, err
	}
	return v.hopTo(host, now, wish)
}

// unfinished is the version at which the half-done upgrade of a host ends: its components are
// all brought to what its API server runs, before any of them goes to another minor. Unknown
// where nothing is half done, and where a peer runs the next minor already: nothing goes below that.
func (v *View) unfinished(host HostState) Version {
	now := v.api[host.Name]
	if !host.oldestComponent(now).LessThan(now) {
		return Version{}
	}
	finish := now
	for name, version := range v.api {
		switch {
		case name == host.Name:
		case version.MinorsAhead(now) > 0:
			return Version{}
		case version.SameMinor(now):
			finish = later(finish, version)
		}
	}
	return finish
}

// hopTo is the version of the next hop on the way to a wish: what is half done, else the wish
// itself when it is in reach, else what the peers already run of the minor in between, else
// the known release of it.
func (v *View) hopTo(host HostState, now, wish Version) (Version, *Blocked) {
	if finish := v.unfinished(host); finish.Known() && wish.MinorsAhead(now) > 0 {
		return finish, nil
	}
	if wish.MinorsAhead(now) <= 1 {
		return wish, nil
	}
	minor := now.nextMinor()
	var peer Version
	for name, version := range v.api {
		if name != host.Name && version.Minor() == minor {
			peer = later(peer, version)
		}
	}
	if peer.Known() {
		return peer, nil
	}
	if patch, ok := ParseKubernetes(v.fleet.HopPatch[minor]); ok && patch.Minor() == minor {
		return patch, nil
	}
	why := ""
	if text := v.fleet.HopUnknown[minor]; text != "" {
		why = " (" + text + ")"
	}
	return Version{}, wait(ReasonHopVersionUnknown, "%s goes from %s to %s through %s, and which release of %s to take is not known%s: mend that, or set spec.versions.controlPlane and spec.versions.kubelet of every control-plane Machine to one release of %s first (in the MachineDeployment's template, where they come from one), and on towards %s when all of them run it; leave the workers as they are until then", host.Name, now.Raw(), wish.Raw(), minor, minor, why, minor, wish.Raw())
}

// wishedHop is the next control-plane hop of a machine by its own wish; unknown for none. It
// fails where the machine takes no hop because of what else is wished for.
func (v *View) wishedHop(h HostState) (Version, *Blocked) {
	wish, ok := ParseKubernetes(string(h.Wish.ControlPlane))
	if !ok || !h.Managed || !h.IsControlPlane() {
		return Version{}, nil
	}
	if err := v.kubeletHolds(h, h.Wish); err != nil {
		return Version{}, err
	}
	return v.hopOf(h, wish)
}

// controlPlaneThere says that the host's own control plane has nothing left to do.
func (n *next) controlPlaneThere() bool {
	wish, ok := ParseKubernetes(string(n.wish.ControlPlane))
	return n.wish.ControlPlane == "" || !n.host.IsControlPlane() || ok && controlPlaneAt(n.host.control(), wish)
}
