package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// kubeadm upgrade node reads kubelet.conf, and fails in the middle of the window without it.
func TestAKubeletOutsideOfAClusterIsMovedWithoutKubeadmUpgradeNode(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(in *PlanInput)
		kubeadm bool
	}{
		"joined":                        {func(*PlanInput) {}, true},
		"never joined":                  {func(in *PlanInput) { in.Facts.Node = nil }, false},
		"a host that was not looked at": {func(in *PlanInput) { in.Facts.Node, in.Estimate = nil, true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := PlanInput{
				Machine: "w1", Spec: worker(), Facts: workerFacts("v1.36.3", "1.7.28"), Assignment: kubeletTo("v1.37.2", "v1.37.2"),
				Candidates: candidatesOf([]string{"v1.37.2"}, nil),
			}
			tc.change(&in)
			p := plan(t, in)
			steps := outline(p)
			assert.Contains(t, steps, "InstallPackages kubeadm=1.37.2-1.1", "the next kubeadm join is of the kubelet's minor")
			assert.Contains(t, steps, "RestartUnit kubelet.service")
			if tc.kubeadm {
				assert.Contains(t, kindsOf(p), StepKubeadmUpgrade)
				assert.NotContains(t, reasons(p.Findings), FindingNotJoined)
				return
			}
			assert.NotContains(t, kindsOf(p), StepKubeadmUpgrade)
			assert.Contains(t, reasons(p.Findings), FindingNotJoined)
		})
	}
}

func kindsOf(p Plan) []StepKind {
	var kinds []StepKind
	for _, s := range p.Steps {
		kinds = append(kinds, s.Kind)
	}
	return kinds
}
