package upgrade

import "fmt"

// coming is a kubelet that a plan brings to the host, or that the next one would.
type coming struct {
	Version
	// follows says that the control plane moves first. What would keep that kubelet from
	// starting is told before kubeadm has been at the host, which would be left half done.
	follows bool
}

// kubeletComing is the kubelet of the target; where only the control plane moves, the
// nearest to spec that its API server allows. Not known: no kubelet moves.
func (p *planner) kubeletComing() coming {
	wish := p.in.Spec.Versions
	switch {
	case p.want.kubeletChanges:
		return coming{Version: p.want.kubelet}
	case !p.want.controlPlaneChanges || wish == nil || p.in.Facts.Kubelet == nil:
		return coming{}
	}
	next, _ := ParseKubernetes(string(wish.Kubelet))
	if next.MinorsAhead(p.want.controlPlane) > 0 {
		next = p.want.controlPlane
	}
	if now := p.kubeletLast(); !next.Known() || now.Known() && !now.LessThan(next) {
		return coming{}
	}
	return coming{Version: next, follows: true}
}

// kubeletLast is what runs, or what is installed where nothing does.
func (p *planner) kubeletLast() Version {
	k := p.in.Facts.Kubelet
	if k == nil {
		return Version{}
	}
	text := k.Running
	if k.down() {
		text = k.Installed
	}
	now, _ := ParseKubernetes(text)
	return now
}

// why is what to add to a refusal for the sake of a kubelet that only follows.
func (c coming) why() string {
	if !c.follows {
		return ""
	}
	return fmt.Sprintf(" (the control plane goes first and its kubelet follows to %s: the host would be left half done)", c.Version)
}
