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
	if peers := v.peersBehind(host.Name, hop); len(peers) > 0 {
		return wait(ReasonWaitingForControlPlane, "%s waits before it goes to %s: the API servers of %s are more than one minor older, and all must be within one minor of each other", host.Name, hop, nameHosts(peers))
	}
	if len(v.deaf) > 0 {
		return wait(ReasonVersionUnknown, "the kubelets of %s report no version that is understood, so it is not known whether an API server %s would leave them behind: see that they run", nameHosts(slices.Sorted(maps.Keys(v.deaf))), hop)
	}
	if lagging := v.lagging(hop); len(lagging) > 0 && hop.MinorsAhead(now) > 0 {
		return wait(ReasonWaitingForKubelets, "an API server %s would leave these kubelets too far behind: %s; upgrade them first", hop, nameHosts(lagging))
	}
	if blocked := v.clientsLeft(host, hop); blocked != nil {
		return blocked
	}
	return v.etcdMembers(host, hop)
}

// peersBehind names the control planes that a hop would leave more than one minor behind.
func (v *View) peersBehind(host string, hop Version) []string {
	var names []string
	for name, version := range v.api {
		if name != host && hop.MinorsAhead(version) > 1 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
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
