package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestTheLastControlPlaneOfAHopRollsTheAddonsThatSpecDoesNotSkip(t *testing.T) {
	for name, tc := range map[string]struct {
		oldest string
		skip   []v1alpha1.KubeadmPhase
		addons []string
		says   string
	}{
		"another one is still to come": {oldest: "v1.36.3", says: "KubeadmUpgrade: v1.37.2"},
		"the last one":                 {oldest: "v1.37.2", addons: []string{"addon/kube-proxy", "addon/coredns"}, says: "KubeadmUpgrade: v1.37.2, and kube-proxy and CoreDNS on all nodes"},
		"without CoreDNS":              {oldest: "v1.37.2", skip: []v1alpha1.KubeadmPhase{v1alpha1.KubeadmPhaseCoreDNS}, addons: []string{"addon/kube-proxy"}, says: "KubeadmUpgrade: v1.37.2, and kube-proxy on all nodes"},
		"without any":                  {oldest: "v1.37.2", skip: []v1alpha1.KubeadmPhase{v1alpha1.KubeadmPhaseKubeProxy, v1alpha1.KubeadmPhaseCoreDNS}, says: "KubeadmUpgrade: v1.37.2"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, a := controlPlane(), controlPlaneTo("v1.37.2")
			spec.Kubeadm = &v1alpha1.KubeadmSpec{SkipPhases: tc.skip}
			a.Target.Kubelet = "" // follows in a window of its own
			a.Skew = &v1alpha1.Skew{MinAPIServer: tc.oldest, MaxAPIServer: "v1.37.2"}
			made := plan(t, PlanInput{Machine: "w1", Spec: spec, Assignment: a, Facts: controlPlaneFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
			for _, s := range made.Steps {
				if s.Kind == StepKubeadmUpgrade {
					assert.Equal(t, tc.addons, s.Kubeadm.Addons)
					assert.Len(t, s.Kubeadm.SkipPhases, len(tc.skip))
					assert.Equal(t, tc.says, s.Describe())
					return
				}
			}
			require.Fail(t, "the plan has no kubeadm step")
		})
	}
}

func TestAPhaseThatKubeadmDoesNotHaveIsNotSkipped(t *testing.T) {
	step := Step{Kind: StepKubeadmUpgrade, Kubeadm: &KubeadmUpgrade{Version: "v1.31.4", ControlPlane: true, SkipPhases: []string{"addon/coredns"}}}
	found := phasesLeftOut(&planner{steps: []Step{step}})
	require.Len(t, found, 1)
	assert.Equal(t, FindingPhaseNotSkippable, found[0].Reason)
	assert.Equal(t, SeverityError, found[0].Severity)
	step.Kubeadm.Version = "v1.32.0"
	assert.Empty(t, phasesLeftOut(&planner{steps: []Step{step}}))
}
