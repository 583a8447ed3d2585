package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// worker is a host whose kubelet goes to the next minor, drained, with its API server stated.
func worker() apply.Situation {
	m := &v1alpha1.Machine{}
	m.Name, m.Spec.Versions = "w1", &v1alpha1.Versions{Kubelet: "v1.37.2"}
	return apply.Situation{
		Machine: m, Drained: true,
		Facts: upgrade.Facts{
			Kubelet: &upgrade.ComponentFacts{Running: "v1.36.3"}, Node: &upgrade.NodeFacts{Name: "node-1"},
			Runtime: &upgrade.RuntimeFacts{Name: "containerd", Running: "1.7.28", Sandboxes: 4},
		},
		Plan: upgrade.Plan{Disruption: v1alpha1.DisruptionDrain},
	}
}

func skewUnknown(s *apply.Situation) {
	s.Plan.Findings = []upgrade.Finding{{Severity: upgrade.SeverityWarning, Reason: upgrade.FindingSkewUnknown}}
}

func TestWhatNobodyElseCanAnswerForIsAskedOfThePersonAtTheHost(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *apply.Situation)
		reason string
		says   string
	}{
		"a drained host":             {func(*apply.Situation) {}, "", ""},
		"an agent that runs":         {func(s *apply.Situation) { s.AgentRuns = true }, apply.ReasonAgentRunning, "systemctl stop refit-agent"},
		"one pod, and no word of it": {func(s *apply.Situation) { s.Drained, s.Facts.Runtime.Sandboxes = false, 1 }, apply.ReasonNotDrained, "(1 pod runs here; "},
		"pods, and no word of it":    {func(s *apply.Situation) { s.Drained = false }, apply.ReasonNotDrained, "4 pods run here; disruption Drain"},
		"the command that drains":    {func(s *apply.Situation) { s.Drained = false }, apply.ReasonNotDrained, "kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data"},
		"no pod is left":             {func(s *apply.Situation) { s.Drained, s.Facts.Runtime.Sandboxes = false, 0 }, "", ""},
		"a plan that keeps pods":     {func(s *apply.Situation) { s.Drained, s.Plan.Disruption = false, v1alpha1.DisruptionRestart }, "", ""},
		"a runtime that is silent":   {func(s *apply.Situation) { s.Drained, s.Facts.Runtime = false, nil }, apply.ReasonNotDrained, "not known"},
		"a runtime without a version": {func(s *apply.Situation) {
			s.Drained, s.Facts.Runtime = false, &upgrade.RuntimeFacts{Name: "containerd"}
		}, apply.ReasonNotDrained, "not known"},
		"a host without Kubernetes reboots": {func(s *apply.Situation) {
			s.Drained, s.Resumes, s.Facts, s.Plan.Disruption = false, true, upgrade.Facts{}, v1alpha1.DisruptionReboot
		}, "", ""},
		"a reboot that nothing follows": {func(s *apply.Situation) { s.Plan.Disruption = v1alpha1.DisruptionReboot }, apply.ReasonResumeDisabled, "systemctl enable refit-resume.service"},
		"a reboot with pods":            {func(s *apply.Situation) { s.Drained, s.Plan.Disruption = false, v1alpha1.DisruptionReboot }, apply.ReasonNotDrained, "disruption Reboot"},
		"a node that is not known": {func(s *apply.Situation) {
			s.Drained, s.Facts.Node = false, nil
		}, apply.ReasonNotDrained, "kubectl uncordon w1"},
		"a new minor, and no API server stated": {skewUnknown, upgrade.ReasonSkewUnknown, "--api-server-version"},
		"a new patch, and no API server stated": {func(s *apply.Situation) {
			skewUnknown(s)
			s.Machine.Spec.Versions.Kubelet = "v1.36.9"
		}, "", ""},
		"a spec without a kubelet, which is down": {func(s *apply.Situation) {
			skewUnknown(s)
			s.Facts.Kubelet.Running, s.Machine.Spec.Versions.Kubelet = "", ""
		}, "", ""},
		"a kubelet that is down, and stays in its minor": {func(s *apply.Situation) {
			skewUnknown(s)
			s.Facts.Kubelet.Running, s.Facts.Kubelet.Installed, s.Machine.Spec.Versions.Kubelet = "", "v1.36.3", "v1.36.9"
		}, "", ""},
		"a kubelet that says nothing": {func(s *apply.Situation) {
			skewUnknown(s)
			s.Facts.Kubelet.Running = ""
		}, upgrade.ReasonSkewUnknown, ""},
		"a control plane knows its own": {func(s *apply.Situation) {
			skewUnknown(s)
			s.Facts.Control = &upgrade.ControlFacts{APIServer: "v1.37.2"}
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := worker()
			tc.change(&s)
			blocked := apply.Check(s)
			if tc.reason == "" {
				assert.Nil(t, blocked)
				return
			}
			require.NotNil(t, blocked)
			assert.Equal(t, tc.reason, blocked.Reason)
			assert.Contains(t, blocked.Message, tc.says)
		})
	}
}
