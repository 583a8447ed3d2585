package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// phasesSince is the first release whose kubeadm has the addons as phases of both upgrade
// commands, so that one can be left out; before, the last upgrade rolls them in one piece.
const phasesSince = "v1.32.0"

// addonPhases are the addons that kubeadm rolls over the whole cluster, by the names of their phases.
var addonPhases = []v1alpha1.KubeadmPhase{v1alpha1.KubeadmPhaseKubeProxy, v1alpha1.KubeadmPhaseCoreDNS}

// SkippablePhase says whether a phase of kubeadm's upgrade can be left out.
func SkippablePhase(phase string) bool {
	return slices.Contains(addonPhases, v1alpha1.KubeadmPhase(phase))
}

// addons says which phases a control-plane run leaves out, and which addons it rolls:
// kubeadm rolls them with the run after which no API server is of another version
// (https://github.com/kubernetes/kubeadm/issues/2346).
func (p *planner) addons(k *KubeadmUpgrade) {
	if s := p.in.Spec.Kubeadm; s != nil {
		for _, phase := range s.SkipPhases {
			k.SkipPhases = append(k.SkipPhases, string(phase))
		}
	}
	slices.Sort(k.SkipPhases)
	if !p.lastOfHop() {
		return
	}
	for _, phase := range addonPhases {
		if !slices.Contains(k.SkipPhases, string(phase)) {
			k.Addons = append(k.Addons, string(phase))
		}
	}
}

// lastOfHop says that every other live API server runs the version of this hop already.
func (p *planner) lastOfHop() bool {
	s := p.in.Assignment.Skew
	return s != nil && SameKubernetes(s.MinAPIServer, p.want.controlPlane.String()) && SameKubernetes(s.MaxAPIServer, p.want.controlPlane.String())
}

// phasesLeftOut finds a phase that kubeadm of the target cannot leave out.
func phasesLeftOut(p *planner) []Finding {
	step := p.kubeadmRun()
	if step == nil {
		return nil
	}
	since, _ := ParseKubernetes(phasesSince)
	if version, ok := ParseKubernetes(step.Version); ok && version.LessThan(since) && len(step.SkipPhases) > 0 {
		return []Finding{failure(FindingPhaseNotSkippable, "spec.kubeadm.skipPhases names %s, and kubeadm %s has no such phases to leave out (it has them since v1.32): take the field away, or upgrade the control plane by hand for this minor", strings.Join(step.SkipPhases, ", "), step.Version)}
	}
	return nil
}

func (p *planner) kubeadmRun() *KubeadmUpgrade {
	for _, s := range p.steps {
		if s.Kind == StepKubeadmUpgrade && s.Kubeadm != nil && s.Kubeadm.ControlPlane {
			return s.Kubeadm
		}
	}
	return nil
}

func (k KubeadmUpgrade) object() string {
	text := k.Version
	if len(k.Addons) > 0 {
		text += ", and " + addonNames(k.Addons) + " on all nodes"
	}
	return text
}

func addonNames(phases []string) string {
	names := make([]string, 0, len(phases))
	for _, phase := range phases {
		name := strings.TrimPrefix(phase, "addon/")
		if phase == string(v1alpha1.KubeadmPhaseCoreDNS) {
			name = "CoreDNS"
		}
		names = append(names, name)
	}
	return strings.Join(names, " and ")
}
