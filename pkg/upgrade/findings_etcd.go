package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// etcdReady judges etcd for a plan that disturbs its member on this host, or moves an API server
// that stores in it. What the facts do not have is asked for by unknownFacts, and by GuardEtcd.
func etcdReady(p *planner) []Finding {
	if p.in.Facts.Etcd == nil || !p.dependsOnEtcd() {
		return nil
	}
	return p.in.Facts.Etcd.Judge(p.acceptedOfEtcd())
}

// ownPreflights are findings that spec.kubeadm.ignorePreflightErrors lets pass and that kubeadm does not know.
var ownPreflights = []string{FindingRemovedAPI, FindingEtcdTwoMembers}

// acceptedOfEtcd are the findings about etcd that spec lets pass.
func (p *planner) acceptedOfEtcd() []string {
	if p.ignores(FindingEtcdTwoMembers) {
		return []string{FindingEtcdTwoMembers}
	}
	return nil
}

// etcdHere says that a member of etcd runs on this host. One that is a unit of a worker is somebody
// else's: it stores nothing of the cluster.
func (p *planner) etcdHere() bool {
	if roles := p.in.Spec.Roles; p.in.Facts.EtcdUnit != nil && len(roles) > 0 && !slices.Contains(roles, v1alpha1.RoleEtcd) && !slices.Contains(roles, v1alpha1.RoleControlPlane) {
		return false
	}
	if e := p.in.Facts.Etcd; e != nil {
		return !e.elsewhere()
	}
	if p.in.Facts.EtcdUnit != nil {
		return true
	}
	c := p.in.Facts.Control
	return c != nil && (c.Etcd != "" || c.Manifests["etcd"] != "")
}

// disturbsMember says that the plan restarts the member on this host: by kubeadm, with the
// certificates, with the sandboxes, with the kubelet's minor or with the host.
func (p *planner) disturbsMember() bool {
	return p.etcdHere() && (p.want.controlPlaneChanges || p.want.etcdChanges || rank(p.disruption) >= rank(v1alpha1.DisruptionDrain) ||
		slices.ContainsFunc(p.steps, func(s Step) bool { return s.Kind == StepRestartStaticPod && s.Pod == "etcd" }))
}

func (p *planner) dependsOnEtcd() bool {
	return p.disturbsMember() || p.want.controlPlaneChanges && p.in.Facts.Etcd != nil
}

// needsEtcd says that nothing may be guessed of etcd, unless the plan mends why it does not answer.
func (p *planner) needsEtcd() bool {
	return (p.disturbsMember() || p.want.controlPlaneChanges) && !p.memberDown()
}

// memberDown says that the member on this host is away for what the plan mends, and is not disturbed
// by that: a runtime or a kubelet that is known to be down, or certificates that are over.
func (p *planner) memberDown() bool {
	f := p.in.Facts
	if f.EtcdUnit != nil { // no runtime and no kubelet has a hand in it
		return false
	}
	return f.Runtime.down() || f.Kubelet.down() || p.renews() && f.Etcd == nil
}

// guardsEtcd are the steps right before the first one that disturbs etcd's member, in an order in
// which nothing is touched when one of them fails.
func (p *planner) guardsEtcd() []Step {
	var steps []Step
	if p.snapshotsEtcd() {
		steps = append(steps, Step{Kind: StepSnapshotEtcd})
	}
	if p.dependsOnEtcd() && (p.in.Facts.Etcd != nil || !p.memberDown()) {
		steps = append(steps, Step{Kind: StepGuardEtcd, Accept: p.acceptedOfEtcd()})
	}
	if p.disturbsMember() && !p.memberDown() {
		steps = append(steps, Step{Kind: StepMoveEtcdLeader})
	}
	return steps
}

// snapshotsEtcd: one for each hop, by the host that goes first. What kubeadm then does to etcd and to
// the stored objects cannot be taken back by anything else, and no etcd goes back either.
func (p *planner) snapshotsEtcd() bool {
	if p.want.etcdChanges {
		return p.firstOfEtcd()
	}
	return p.want.controlPlaneChanges && p.dependsOnEtcd() && p.kubeadmRole() == v1alpha1.KubeadmFirst
}

// guarded has the guards of etcd again before a reboot that follows other work: the others may
// have gone away since, and the leadership may have come back.
func (p *planner) guarded(steps []Step) []Step {
	at := slices.IndexFunc(steps, func(s Step) bool { return s.Kind == StepReboot })
	worked := at > 0 && slices.ContainsFunc(steps[:at], func(s Step) bool {
		return slices.Contains([]StepKind{StepKubeadmUpgrade, StepStopSandboxes, StepRestartUnit, StepRestartStaticPod}, s.Kind)
	})
	if !worked || !p.disturbsMember() || p.memberDown() {
		return steps
	}
	return slices.Insert(slices.Clone(steps), at, Step{Kind: StepGuardEtcd, Accept: p.acceptedOfEtcd()}, Step{Kind: StepMoveEtcdLeader})
}
