package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// kubeadmRole is First for one machine of a hop until it is through, then Other for the rest.
func (v *View) kubeadmRole(host HostState, hop, wish Version) (v1alpha1.KubeadmRole, *Blocked) {
	for _, h := range v.control {
		if h.Name != host.Name && controlPlaneAt(h.control(), hop) {
			return v1alpha1.KubeadmOther, nil
		}
	}
	if first := v.first(hop); first != "" && first != host.Name {
		return "", wait(ReasonWaitingForFirst, "%s is the first control-plane machine to go to %s; %s follows when it is through", first, hop, host.Name)
	}
	if peer, next := v.overtakenBy(host, wish); peer != "" {
		return "", refuse(ReasonDowngradeRefused, "spec wants %s for %s, and %s goes to %s next: no control plane goes to a version below a peer's; set spec.versions.controlPlane of both to one version, %s or newer", wish.Raw(), host.Name, peer, next, next)
	}
	return v1alpha1.KubeadmFirst, nil
}

// first is the machine that begins a hop: the one that has begun, else the first by name
// that may move. Who goes elsewhere next, or nowhere, is not waited for.
func (v *View) first(hop Version) string {
	var begun, pending string
	for _, h := range v.control {
		next, err := v.wishedHop(h)
		if h.First && h.keepsFirst(hop, next, err) {
			return h.Name
		}
		if !next.Equal(hop) {
			continue
		}
		if begun == "" && v.api[h.Name].Equal(hop) {
			begun = h.Name
		}
		if pending == "" && !h.Sidelined && v.allowControlPlane(h, hop) == nil {
			pending = h.Name
		}
	}
	return firstOf(begun, pending)
}

// keepsFirst says that a machine which was granted a hop as its first still has it to do. In
// the middle of it, what its components run may not be known for a while.
func (h HostState) keepsFirst(hop, next Version, err *Blocked) bool {
	if err != nil {
		wish, _ := ParseKubernetes(string(h.Wish.ControlPlane))
		return !err.Terminal && !wish.LessThan(hop) && !controlPlaneAt(h.control(), hop)
	}
	return next.Equal(hop)
}

// overtakenBy names a peer whose next hop, which it may take now, is past all that a host wishes for.
func (v *View) overtakenBy(host HostState, wish Version) (peer string, next Version) {
	for _, h := range v.control {
		if h.Name == host.Name || h.Sidelined {
			continue
		}
		if next, err := v.wishedHop(h); err == nil && wish.LessThan(next) && v.allowControlPlane(h, next) == nil {
			return h.Name, next
		}
	}
	return "", Version{}
}
