package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// kubeletHolds refuses a machine whose kubelet is wished to be what it may never be: its control plane stays as well.
func (v *View) kubeletHolds(h HostState, wish v1alpha1.Versions) *Blocked {
	if wish.Kubelet == "" || !h.hasKubelet() {
		return nil
	}
	want, ok := ParseKubernetes(string(wish.Kubelet))
	if !ok {
		return kubeletInvalid(h, wish)
	}
	if now, err := h.kubelet(); err == nil && h.kubeletRuns() && h.kubeletGoesBack(now, want, wish) {
		return v.kubeletRefused(h, now, want)
	}
	return nil
}

// kubelet adds the kubelet's move, next to a control-plane hop or without one.
func (n *next) kubelet(hop Version) *Blocked {
	if n.wish.Kubelet == "" || !n.host.hasKubelet() {
		return nil
	}
	wish, ok := ParseKubernetes(string(n.wish.Kubelet))
	if !ok {
		return kubeletInvalid(n.host, n.wish)
	}
	now, err := n.host.kubelet()
	if err != nil {
		return err
	}
	if !n.host.kubeletRuns() {
		if err := n.deadKubelet(now, wish, hop); err != nil {
			return n.mend(err, hop)
		}
	}
	if now.Equal(wish) {
		return nil
	}
	if n.host.kubeletGoesBack(now, wish, n.wish) {
		return n.view.kubeletRefused(n.host, now, wish)
	}
	api, err := n.view.apiServers(n.host.Name, hop)
	if err != nil {
		return err
	}
	return n.moveKubelet(now, wish, hop, api)
}

func kubeletInvalid(h HostState, wish v1alpha1.Versions) *Blocked {
	return refuse(ReasonVersionInvalid, "spec.versions.kubelet of %s is %q, which is no Kubernetes version: write it like v1.37.2", h.Name, wish.Kubelet)
}

// kubeletGoesBack says that a kubelet would go to a lower version that the host has not run before.
func (h HostState) kubeletGoesBack(now, want Version, wish v1alpha1.Versions) bool {
	return want.LessThan(now) && !recordedIn(h.Record, wish, &h.Versions)
}

func (v *View) kubeletRefused(h HostState, now, want Version) *Blocked {
	return refuse(ReasonDowngradeRefused, "the kubelet of %s runs %s and spec wants %s: a lower version is refused, unless this machine has run all of spec.versions under Refit before, next to what else it runs now; %s", h.Name, now.Raw(), want.Raw(), v.instead(h.Name, now))
}

// repairsFirst says that another kubelet may mend a broken host now: it is wished for,
// skew allows it as the API servers are, and it waits for no hop of a control plane,
// not even of its own, which only a kubelet that runs can take.
func (n *next) repairsFirst() bool {
	wish, ok := ParseKubernetes(string(n.wish.Kubelet))
	if !ok || !n.host.hasKubelet() || !n.host.broken() {
		return false
	}
	now, err := n.host.kubelet()
	if err != nil || !now.LessThan(wish) {
		return false
	}
	return n.view.allowKubelet(n.host, wish, Version{}) == nil
}

// deadKubelet says what another version cannot mend: a kubelet that has the wished one
// already, and a control plane, whose static pods only a running kubelet exchanges.
func (n *next) deadKubelet(now, wish, hop Version) *Blocked {
	switch {
	case now.Equal(wish):
		return wait(ReasonVersionUnknown, "the kubelet of %s does not run, and the one it has is %s already, as spec wants: see why it does not run (journalctl -u kubelet on the host), or set spec.versions.kubelet to another release", n.host.Name, now.Raw())
	case hop.Known():
		return wait(ReasonVersionUnknown, "the kubelet of %s does not run, and no control plane goes to %s without it: see why it does not run (journalctl -u kubelet on the host), or repair it first with a spec.versions.kubelet of the minor that the API servers run", n.host.Name, hop)
	}
	return nil
}

// moveKubelet takes the kubelet as far as it may go, or leaves it for a later window.
func (n *next) moveKubelet(now, wish, hop Version, api versionRange) *Blocked {
	behind := api.max.MinorsAhead(wish) > kubeletSkew(wish)
	switch {
	case hop.Known() && (!n.last || behind || !wish.SameMinor(hop) || n.awaited(wish, api.min)):
		n.last = false // the control plane goes alone, the kubelet has its own window
	case behind:
		return refuse(ReasonSkewViolated, "spec wants kubelet %s on %s, which is %d minors behind the newest API server %s: at most %d are allowed", wish.Raw(), n.host.Name, api.max.MinorsAhead(wish), api.max.Raw(), kubeletSkew(wish))
	case wish.MinorsAhead(api.min) <= 0 && (n.host.broken() || !n.awaited(wish, api.min) || n.mustCatchUp(now, api)):
		n.target.Kubelet = n.wish.Kubelet
	case n.mustCatchUp(now, api):
		n.target.Kubelet, n.last = v1alpha1.KubernetesVersion(api.min.String()), false
	default:
		return n.awaitControlPlane(wish, api.min)
	}
	return nil
}

// awaited says that the oldest API server is older than the kubelet's wish, and about to catch up.
func (n *next) awaited(wish, oldest Version) bool {
	return oldest.LessThan(wish) && n.coming(wish)
}

// mustCatchUp says that a control plane on its way cannot take its next minor while this kubelet is where it is.
func (n *next) mustCatchUp(now Version, api versionRange) bool {
	if api.min.MinorsAhead(now) <= 0 {
		return false
	}
	return slices.ContainsFunc(n.view.control, func(h HostState) bool {
		hop, err := n.view.wishedHop(h)
		return err == nil && !h.Sidelined && hop.MinorsAhead(n.view.api[h.Name]) > 0 && tooFarBehind(now, hop)
	})
}
