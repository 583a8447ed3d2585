package upgrade

func (p *planner) checkKubelet() error {
	target := p.in.Assignment.Target.Kubelet
	if target == "" {
		return nil
	}
	want, err := parseTarget("kubelet", string(target))
	if err != nil {
		return err
	}
	now, err := p.kubeletNow()
	if err != nil {
		return err
	}
	pkg, packaged := p.installed[packageKubelet]
	p.want.kubelet, p.want.kubeletNow = want, now
	running, _ := ParseKubernetes(p.in.Facts.Kubelet.Running)
	p.want.kubeletChanges = !running.Equal(want) || packaged && !carries(pkg.Version, want.Upstream())
	if p.want.kubeletChanges && !packaged {
		return p.notPackaged("the kubelet of this host runs %s but no package %s is installed: Refit moves packages, and leaves a kubelet that was installed otherwise alone", now.Raw(), packageKubelet)
	}
	if newest := later(now, packageUpstream(pkg.Version)); want.LessThan(newest) && !p.recorded() {
		return refuse(ReasonDowngradeRefused, "the kubelet of this host is at %s and the target is %s: a lower version is refused, unless this host has run the whole target under Refit before, next to what else it runs now; set spec.versions.kubelet to %s or newer", newest.Raw(), want.Raw(), newest)
	}
	return nil
}

// kubeletNow is what runs; when nothing runs, what is installed: a dead kubelet can be repaired.
func (p *planner) kubeletNow() (Version, error) {
	k := p.in.Facts.Kubelet
	if k == nil {
		return Version{}, wait(ReasonVersionUnknown, "no kubelet was found on this host%s: install it, or remove spec.versions.kubelet", p.problem("kubelet"))
	}
	if k.Active { // it runs: what is on disk says nothing about it
		return parseObserved("kubelet", k.Running)
	}
	return parseObserved("kubelet", firstOf(k.Running, k.Installed))
}
