package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// runtimeFloor says from which kubelet minor on which runtime version is needed.
type runtimeFloor struct {
	kubelet string
	runtime string
	why     string
}

// runtimeFloors is the runtime × kubelet table: kubelets that no longer take an older runtime.
var runtimeFloors = map[v1alpha1.RuntimeName][]runtimeFloor{
	v1alpha1.RuntimeContainerd: {{kubelet: "v1.26.0", runtime: "1.6.0", why: "it speaks only CRI v1"}, {kubelet: "v1.38.0", runtime: "2.0.0", why: toldDriver}},
	v1alpha1.RuntimeCRIO:       {{kubelet: "v1.26.0", runtime: "1.20.0", why: "it speaks only CRI v1"}, {kubelet: "v1.38.0", runtime: "1.28.0", why: toldDriver}},
}

// toldDriver: kubelets up to v1.37 fall back to their own configuration, and count such
// runtimes in kubelet_cri_losing_support with version 1.38.0
// (https://github.com/kubernetes/enhancements/issues/4033).
const toldDriver = "it wants to be told the cgroup driver by the runtime"

// checkPairing sees that the kubelet after the hop takes the runtime after the hop.
func (p *planner) checkPairing() error {
	r, next := p.in.Facts.Runtime, p.kubeletComing()
	if !next.Known() && !p.want.runtimeChanges || r == nil {
		return nil
	}
	after := p.kubeletAfter()
	runtime := p.runtimeAfter()
	if next.follows {
		after, runtime = next.Version, p.runtimeComing()
	}
	if _, judged := runtimeFloors[v1alpha1.RuntimeName(r.Name)]; judged && !runtime.Known() {
		return wait(ReasonVersionUnknown, "the version of %s on this host is %q, so it is not known whether kubelet %s takes it: see that the runtime runs", r.Name, firstOf(runtimeText(r)...), after.Raw())
	}
	return p.checkFloors(r.Name, runtime, after)
}

// runtimeComing is the runtime that a kubelet finds which follows its control plane: that of
// spec, which moves before it.
func (p *planner) runtimeComing() Version {
	if wish := p.in.Spec.Versions.ContainerRuntime; wish != nil {
		if v, ok := ParseRelease(string(wish.Version)); ok {
			return v
		}
	}
	return p.runtimeAfter()
}

// checkFloors looks a pair up in the table. Under a kubelet that is not known a runtime may only go forward.
func (p *planner) checkFloors(name string, runtime, kubelet Version) error {
	for _, floor := range runtimeFloors[v1alpha1.RuntimeName(name)] {
		from, _ := ParseKubernetes(floor.kubelet)
		least, _ := ParseRelease(floor.runtime)
		switch {
		case !runtime.LessThan(least):
		case !kubelet.Known() && runtime.LessThan(p.want.runtimeNow):
			return wait(ReasonVersionUnknown, "the version of the kubelet on this host is not known, so neither is whether it takes %s %s: see that the kubelet runs", name, runtime.Raw())
		case kubelet.Known() && kubelet.MinorsAhead(from) >= 0:
			return refuse(ReasonRuntimeTooOld, "kubelet %s does not take %s %s (%s): set spec.versions.containerRuntime.version to %s or newer, which moves first in the same window%s", kubelet.Raw(), name, runtime.Raw(), floor.why, floor.runtime, p.kubeletComing().why())
		}
	}
	return nil
}

// kubeletAfter is the kubelet after the hop: the wished one, else the one that stays. One
// that does not run counts with what is installed.
func (p *planner) kubeletAfter() Version {
	if k := p.in.Facts.Kubelet; !p.want.kubelet.Known() && k != nil {
		now, _ := ParseKubernetes(firstOf(k.Running, k.Installed))
		return now
	}
	return p.want.kubelet
}
