package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// NextTarget says what one machine is to become in its next hop, under which
// kubeadm role, and which API servers it will meet once its own control plane has
// moved. An empty Target without *Blocked says that nothing is pending.
//
// The control plane goes first, one minor at a time, every machine before the next
// minor. Kubelets go to their wish in as few drains as skew allows, and everything
// else that is pending rides on the last window of a machine.
func NextTarget(fleet Fleet, host HostState, wish v1alpha1.Versions) (v1alpha1.Target, v1alpha1.KubeadmRole, v1alpha1.Skew, *Blocked) {
	return NewView(fleet).NextTarget(host, wish)
}

// NextTarget is the function of that name, on a parsed fleet.
func (v *View) NextTarget(host HostState, wish v1alpha1.Versions) (v1alpha1.Target, v1alpha1.KubeadmRole, v1alpha1.Skew, *Blocked) {
	n := &next{view: v, host: host, wish: wish}
	if err := n.plan(); err != nil {
		return v1alpha1.Target{}, "", v1alpha1.Skew{}, causedBy(host.PackagesBroken, err)
	}
	return n.target, n.role, n.skew, nil
}

// next works out one hop of one machine.
type next struct {
	view *View
	host HostState
	wish v1alpha1.Versions

	target v1alpha1.Target
	role   v1alpha1.KubeadmRole
	skew   v1alpha1.Skew
	// last says that nothing is left for a later window.
	last bool
	// held says why the kubelet stays behind while the rest goes on.
	held *Blocked
}

func (n *next) plan() *Blocked {
	if err := n.host.RoleMismatch(); err != nil {
		return err
	}
	if first, err := n.repair(); first {
		return err
	}
	n.last = true
	var hop Version
	var err *Blocked
	if n.repairsFirst() {
		n.last = n.controlPlaneThere()
	} else {
		hop, err = n.controlPlane()
	}
	if err != nil && err.Reason != ReasonWaitingForKubelets {
		return err
	}
	stuck := err
	err = n.kubelet(hop)
	if stuck != nil && n.target.Kubelet == "" {
		return stuck
	}
	if err != nil {
		return err
	}
	if n.last && stuck == nil {
		if err := n.ride(); err != nil {
			return err
		}
	}
	if Arrived(n.target) {
		return n.held
	}
	return n.describe(hop)
}

// describe adds what the agent must know of the API servers and of kubeadm. A window in
// which neither kubelet nor control plane moves may restart a kubelet all the same: it is
// told of the API servers where they are known.
func (n *next) describe(hop Version) *Blocked {
	if n.target.Kubelet != "" && !n.host.IsControlPlane() {
		n.role = v1alpha1.KubeadmOther
	}
	api, err := n.view.apiServers(n.host.Name, hop)
	switch {
	case err == nil:
		n.skew = v1alpha1.Skew{MinAPIServer: api.min.String(), MaxAPIServer: api.max.String()}
	case n.target.Kubelet != "" || n.target.ControlPlane != "":
		return err
	}
	return nil
}
