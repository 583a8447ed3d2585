package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func (p *planner) checkControlPlane() error {
	target := p.in.Assignment.Target.ControlPlane
	if target == "" {
		p.finishKubeadm()
		return nil
	}
	if !slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane) {
		return refuse(ReasonRoleMismatch, "the target has a control-plane version but spec.roles has no ControlPlane")
	}
	want, err := parseTarget("controlPlane", string(target))
	if err != nil {
		return err
	}
	control := p.in.Facts.Control
	if control == nil {
		return refuse(ReasonRoleMismatch, "this host runs no control plane (no static pod manifests were found), but spec.roles says ControlPlane: correct spec.roles, or set the host up with kubeadm first")
	}
	now, err := parseObserved("API server", control.APIServer)
	if err != nil {
		return err
	}
	p.want.controlPlane, p.want.controlPlaneNow = want, now
	p.want.controlPlaneChanges = !controlPlaneAt(*control, want)
	p.finishKubeadm()
	if err := p.checkComponents(*control); err != nil {
		return err
	}
	switch {
	case p.want.controlPlaneChanges && p.kubeadmRole() == "":
		return refuse(ReasonRoleMismatch, "the assignment moves the control plane but does not say whether this machine is the first of the hop (kubeadmRole First) or another (Other)")
	case want.LessThan(now):
		return refuse(ReasonDowngradeRefused, "the API server of this host runs %s and the target is %s: a control plane never goes back, since etcd and stored objects cannot follow; set spec.versions.controlPlane to %s or newer", now.Raw(), want.Raw(), now)
	case want.MinorsAhead(now) > 1:
		return refuse(ReasonSkewViolated, "the API server of this host runs %s and the target is %s: kubeadm moves a control plane by one minor at a time; the hop in between is missing from the assignment", now.Raw(), want.Raw())
	}
	return nil
}

// checkComponents refuses to call a control plane done whose components nobody has seen at its version.
func (p *planner) checkComponents(control ControlFacts) error {
	if p.want.controlPlaneChanges {
		return nil
	}
	if why := p.probeFailed("containers"); why != "" && (control.ControllerManager == "" || control.Scheduler == "") {
		return wait(ReasonVersionUnknown, "the containers of this host could not be listed (%s), so it is not known what its controller manager and scheduler run: see that the container runtime answers", why)
	}
	if down := control.downComponent(); down != "" {
		return wait(ReasonVersionUnknown, "the %s of this host has a manifest and does not run, so it is not known which version it is: see why it does not run (crictl ps -a)", down)
	}
	return nil
}

// finishKubeadm plans the rest of a run of kubeadm that moved the static pods and did
// not end well: the versions that run cannot tell it from one that did.
func (p *planner) finishKubeadm() {
	control := p.in.Facts.Control
	if control == nil || control.Unfinished == nil || !slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane) {
		return
	}
	version, ok := ParseKubernetes(control.Unfinished.Version)
	now, known := ParseKubernetes(control.APIServer)
	if ok && known && now.Equal(version) && (!p.want.controlPlane.Known() || p.want.controlPlane.Equal(version)) {
		p.want.finishes = !p.want.controlPlaneChanges
		p.want.controlPlane, p.want.controlPlaneNow, p.want.controlPlaneChanges = version, now, true
	}
}

// kubeadmRole is that of the assignment, or of the run that is to be finished.
func (p *planner) kubeadmRole() v1alpha1.KubeadmRole {
	if p.want.finishes {
		return p.in.Facts.Control.Unfinished.Role
	}
	return p.in.Assignment.KubeadmRole
}

// controlPlaneAt says whether all components of a control plane run a version. One
// that cannot be read counts as done only if the API server is: facts name it when it is there.
func controlPlaneAt(c ControlFacts, want Version) bool {
	for _, text := range []string{c.APIServer, c.ControllerManager, c.Scheduler} {
		if v, ok := ParseKubernetes(text); text != "" && (!ok || !v.Equal(want)) {
			return false
		}
	}
	return c.APIServer != ""
}

// downComponent names a component next to the API server that has a manifest and runs nothing; "" for none.
func (c *ControlFacts) downComponent() string {
	if _, ok := c.Manifests["kube-controller-manager"]; ok && c.ControllerManager == "" {
		return "kube-controller-manager"
	}
	if _, ok := c.Manifests["kube-scheduler"]; ok && c.Scheduler == "" {
		return "kube-scheduler"
	}
	return ""
}
