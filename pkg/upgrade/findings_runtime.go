package upgrade

// runtimeLosingSupport warns while a kubelet still takes a runtime that its project no longer supports.
func runtimeLosingSupport(p *planner) []Finding {
	r := p.in.Facts.Runtime
	if r == nil || r.Name != "containerd" || !p.want.kubeletChanges {
		return nil
	}
	v136, _ := ParseKubernetes("v1.36.0")
	two, _ := ParseRelease("2.0.0")
	if runtime := p.runtimeAfter(); runtime.LessThan(two) && p.want.kubelet.MinorsAhead(v136) >= 0 {
		return []Finding{warning(FindingRuntimeLosing, "kubelet %s still takes containerd %s, whose support ended with v1.35, and which kubelets are announced to refuse from v1.38: set spec.versions.containerRuntime to a 2.x release", p.want.kubelet, runtime.Raw())}
	}
	return nil
}

// runtimeAfter is the runtime's version once the plan is done.
func (p *planner) runtimeAfter() Version {
	if p.want.runtime.Known() {
		return p.want.runtime
	}
	seen, _ := ParseRuntime(firstOf(runtimeText(p.in.Facts.Runtime)...))
	return seen.Version
}

// cgroupDrivers compares what kubelet and runtime really use: two drivers on one host
// restart every pod again and again. A runtime that tells the kubelet its driver decides alone.
func cgroupDrivers(p *planner) []Finding {
	k, r := p.in.Facts.Kubelet, p.in.Facts.Runtime
	if k == nil || r == nil || r.CgroupDriver == "" {
		return nil
	}
	kubelet, _ := k.Configuration["cgroupDriver"].(string)
	if kubelet == "" || kubelet == r.CgroupDriver {
		return nil
	}
	two, _ := ParseRelease("2.0.0")
	if runtime := p.runtimeAfter(); r.Name == "containerd" && runtime.Known() && !runtime.LessThan(two) {
		return []Finding{warning(FindingCgroupDriver, "the kubelet is configured for cgroup driver %s and %s uses %s: the kubelet follows the runtime; set both to the same", kubelet, r.Name, r.CgroupDriver)}
	}
	return []Finding{failure(FindingCgroupDriver, "the kubelet is configured for cgroup driver %s and %s uses %s, which restarts pods again and again: set both to the same (cgroupDriver in the kubelet's configuration, SystemdCgroup in the runtime's), then retry", kubelet, r.Name, r.CgroupDriver)}
}
