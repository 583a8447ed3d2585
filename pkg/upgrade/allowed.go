package upgrade

import (
	"maps"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Allowed says whether a host may take a target while the rest of the fleet is as
// it is: the version-skew policy of Kubernetes, and kubeadm's own limits where they
// are stricter. nil says yes.
func Allowed(fleet Fleet, host HostState, target v1alpha1.Target) *Blocked {
	return NewView(fleet).Allowed(host, target)
}

// Allowed is the function of that name, on a parsed fleet.
func (v *View) Allowed(host HostState, target v1alpha1.Target) *Blocked {
	var hop Version
	if target.ControlPlane != "" {
		var ok bool
		if hop, ok = ParseKubernetes(string(target.ControlPlane)); !ok {
			return refuse(ReasonVersionInvalid, "the target's controlPlane %q is no Kubernetes version", target.ControlPlane)
		}
		if err := v.allowControlPlane(host, hop); err != nil {
			return err
		}
	}
	if target.Kubelet == "" {
		return nil
	}
	kubelet, ok := ParseKubernetes(string(target.Kubelet))
	if !ok {
		return refuse(ReasonVersionInvalid, "the target's kubelet %q is no Kubernetes version", target.Kubelet)
	}
	return v.allowKubelet(host, kubelet, hop)
}

// allowControlPlane judges a control-plane hop of one machine.
func (v *View) allowControlPlane(host HostState, hop Version) *Blocked {
	if v.unread != nil {
		return v.unread
	}
	now := v.api[host.Name]
	if hop.LessThan(now) {
		return refuse(ReasonDowngradeRefused, "the API server of %s runs %s and would go back to %s: a control plane never goes back", host.Name, now.Raw(), hop.Raw())
	}
	if hop.MinorsAhead(now) > 1 {
		return refuse(ReasonSkewViolated, "the API server of %s runs %s and would go to %s: a control plane moves by one minor at a time", host.Name, now.Raw(), hop.Raw())
	}
	if finish := v.unfinished(host); finish.Known() && hop.MinorsAhead(now) > 0 {
		return wait(ReasonSkewViolated, "%s runs an API server %s and older components next to it, so it would go to %s from a half-done upgrade: that ends first, at %s", host.Name, now.Raw(), hop.Raw(), finish)
	}
	if err := v.belowPeer(host, hop); err != nil {
		return err
	}
	if peers := v.peersBehind(host.Name, hop); len(peers) > 0 {
		return wait(ReasonWaitingForControlPlane, "%s waits before it goes to %s: the control planes of %s are more than one minor older, in whole or in part, and all must be within one minor of each other", host.Name, hop, nameHosts(peers))
	}
	if len(v.deaf) > 0 {
		return wait(ReasonVersionUnknown, "the kubelets of %s report no version that is understood, so it is not known whether an API server %s would leave them behind: see that they run", nameHosts(slices.Sorted(maps.Keys(v.deaf))), hop)
	}
	if lagging := v.lagging(hop); len(lagging) > 0 && hop.MinorsAhead(now) > 0 {
		return wait(ReasonWaitingForKubelets, "an API server %s would leave these kubelets too far behind: %s", hop, v.catchUp(lagging, hop))
	}
	if blocked := v.clientsLeft(host, hop); blocked != nil {
		return blocked
	}
	if blocked := v.etcdFirst(host, hop); blocked != nil {
		return blocked
	}
	return v.etcdMembers(host, hop)
}

// belowPeer refuses a hop to less than what the API server of a peer runs: kubeadm would bring
// what all of the cluster shares, such as its configuration, kube-proxy and CoreDNS, back to that.
func (v *View) belowPeer(host HostState, hop Version) *Blocked {
	var newest Version
	var peer string
	for _, h := range v.control {
		if version := v.api[h.Name]; h.Name != host.Name && hop.LessThan(version) && (peer == "" || newest.LessThan(version)) {
			newest, peer = version, h.Name
		}
	}
	if peer == "" {
		return nil
	}
	return refuse(ReasonDowngradeRefused, "%s would go to %s, and the API server of %s runs %s: no control plane goes to a version below a peer's; set spec.versions.controlPlane of %s to %s or newer", host.Name, hop.Raw(), peer, newest.Raw(), host.Name, newest)
}

// catchUp names kubelets that are too far behind for a hop, and says what brings them on.
func (v *View) catchUp(lagging []string, hop Version) string {
	var wished, stay []string
	for _, h := range v.fleet.Hosts {
		if !slices.Contains(lagging, h.Name) {
			continue
		}
		if wish, ok := ParseKubernetes(string(h.Wish.Kubelet)); h.Managed && (!ok || tooFarBehind(wish, hop)) {
			stay = append(stay, h.Name)
			continue
		}
		wished = append(wished, h.Name)
	}
	slices.Sort(wished)
	slices.Sort(stay)
	var says []string
	if len(wished) > 0 {
		says = append(says, nameHosts(wished)+"; upgrade them first")
	}
	if len(stay) > 0 {
		says = append(says, nameHosts(stay)+", which are not to go far enough: raise their spec.versions.kubelet first")
	}
	return strings.Join(says, "; and ")
}

// peersBehind names the control planes that a hop would leave more than one minor behind, or a component of them.
func (v *View) peersBehind(host string, hop Version) []string {
	var names []string
	for _, h := range v.control {
		if h.Name != host && hop.MinorsAhead(h.oldestComponent(v.api[h.Name])) > 1 {
			names = append(names, h.Name)
		}
	}
	return names
}

// allowKubelet judges a kubelet against the API servers it will meet.
func (v *View) allowKubelet(host HostState, kubelet, hop Version) *Blocked {
	api, err := v.apiServers(host.Name, hop)
	if err != nil {
		return err
	}
	if kubelet.MinorsAhead(api.min) > 0 {
		return wait(ReasonSkewViolated, "kubelet %s on %s would be newer than the oldest API server %s: upgrade every control plane first", kubelet.Raw(), host.Name, api.min.Raw())
	}
	if behind := api.max.MinorsAhead(kubelet); behind > kubeletSkew(kubelet) {
		return refuse(ReasonSkewViolated, "kubelet %s on %s would be %d minors behind the newest API server %s: at most %d are allowed", kubelet.Raw(), host.Name, behind, api.max.Raw(), kubeletSkew(kubelet))
	}
	return nil
}
