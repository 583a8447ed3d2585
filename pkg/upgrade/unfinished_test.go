package upgrade

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// A run of kubeadm that moved the static pods and failed after that is part of the next
// plan, although what runs is what was wished.
func TestAnUnfinishedRunOfKubeadmIsPlannedAgain(t *testing.T) {
	kubeadmOf := func(a v1alpha1.Assignment, unfinished *UnfinishedFacts) *KubeadmUpgrade {
		f := controlPlaneFacts("v1.37.2", "1.7.28")
		f.Kubelet.Running, f.Kubelet.Installed = "v1.36.3", "v1.36.3"
		for i, p := range f.Packages.Installed {
			if p.Name == packageKubelet {
				f.Packages.Installed[i].Version = "1.36.3-1.1"
			}
		}
		f.Control.Unfinished = unfinished
		made := plan(t, PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: f, Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
		at := slices.IndexFunc(made.Steps, func(s Step) bool { return s.Kind == StepKubeadmUpgrade })
		restart := slices.IndexFunc(made.Steps, func(s Step) bool { return s.Kind == StepRestartUnit })
		require.Positive(t, restart, "the kubelet follows in any case")
		if at < 0 {
			return nil
		}
		assert.Less(t, at, restart)
		return made.Steps[at].Kubeadm
	}
	same := controlPlaneTo("v1.37.2")
	same.KubeadmRole = "" // the control plane does not move
	onlyKubelet := kubeletTo("v1.37.2", "v1.37.2")
	first := &UnfinishedFacts{Version: "v1.37.2", Role: v1alpha1.KubeadmFirst}
	for name, a := range map[string]v1alpha1.Assignment{"with the control plane in the target": same, "for the kubelet alone": onlyKubelet} {
		t.Run(name, func(t *testing.T) {
			assert.Nil(t, kubeadmOf(a, nil))
			assert.Equal(t, &KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2", ControlPlane: true, Addons: []string{"addon/kube-proxy", "addon/coredns"}}, kubeadmOf(a, first))
			assert.Equal(t, v1alpha1.KubeadmOther, kubeadmOf(a, &UnfinishedFacts{Version: "v1.37.2", Role: v1alpha1.KubeadmOther}).Role)
			assert.Nil(t, kubeadmOf(a, &UnfinishedFacts{Version: "v1.36.3", Role: v1alpha1.KubeadmFirst}), "kubeadm was run since by somebody else")
		})
	}
}
