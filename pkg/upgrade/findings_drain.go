package upgrade

import (
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// drainSkipped tells of the drain that a minor needs and that spec waives, unless
// something else in the window brings it all the same.
func drainSkipped(p *planner) []Finding {
	if !p.drainSkipped() || rank(p.disruption) >= rank(v1alpha1.DisruptionDrain) {
		return nil
	}
	var moves []string
	if p.movesControlPlaneMinor() {
		moves = append(moves, "the control plane goes from "+p.oldestOfControlPlane().Raw()+" to "+p.want.controlPlane.Raw())
	}
	if p.want.kubeletChanges && !p.want.kubelet.SameMinor(p.want.kubeletNow) {
		moves = append(moves, "the kubelet goes from "+p.want.kubeletNow.Raw()+" to "+p.want.kubelet.Raw())
	}
	if len(moves) == 0 {
		return nil
	}
	return []Finding{warning(FindingDrainSkipped, "%s without the drain that a minor needs, since spec.drain.skipForMinor is set: every container on this host may restart in place", strings.Join(moves, " and "))}
}

// oldestOfControlPlane is the oldest of the host's control-plane components: what kubeadm
// left half done is not done, whatever the API server says.
func (p *planner) oldestOfControlPlane() Version {
	oldest := p.want.controlPlaneNow
	if c := p.in.Facts.Control; c != nil {
		for _, text := range []string{c.ControllerManager, c.Scheduler} {
			if v, ok := ParseKubernetes(text); ok && v.LessThan(oldest) {
				oldest = v
			}
		}
	}
	return oldest
}
