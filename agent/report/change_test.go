package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/api/v1alpha1"
)

func processing(step string) v1alpha1.MachineStatus {
	s := base()
	s.LastOperation = &v1alpha1.Operation{ID: "g1", State: v1alpha1.OperationProcessing, Step: step}
	return s
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *v1alpha1.MachineStatus)
		want   report.Change
	}{
		"nothing":                           {func(*v1alpha1.MachineStatus) {}, report.None},
		"what the coordinator owns":         {func(s *v1alpha1.MachineStatus) { s.Phase, s.Grant = v1alpha1.PhaseFailed, nil }, report.None},
		"a condition of the coordinator":    {func(s *v1alpha1.MachineStatus) { s.Conditions[0].Status = metav1.ConditionFalse }, report.None},
		"the time of a report":              {func(s *v1alpha1.MachineStatus) { t := metav1.NewTime(now); s.LastOperation.LastUpdateTime = &t }, report.None},
		"the time of a condition":           {func(s *v1alpha1.MachineStatus) { s.Conditions[1].LastTransitionTime = metav1.NewTime(now) }, report.None},
		"the order of conditions":           {func(s *v1alpha1.MachineStatus) { s.Conditions[0], s.Conditions[1] = s.Conditions[1], s.Conditions[0] }, report.None},
		"another step":                      {func(s *v1alpha1.MachineStatus) { s.LastOperation.Step = "Verify" }, report.Progress},
		"the end of an operation":           {func(s *v1alpha1.MachineStatus) { s.LastOperation.State = v1alpha1.OperationFailed }, report.News},
		"another operation":                 {func(s *v1alpha1.MachineStatus) { s.LastOperation.ID = "g2" }, report.News},
		"another step and another version":  {func(s *v1alpha1.MachineStatus) { s.LastOperation.Step = "x"; s.Versions = nil }, report.News},
		"a condition of the agent":          {func(s *v1alpha1.MachineStatus) { s.Conditions[1].Reason = "x" }, report.News},
		"a plan":                            {func(s *v1alpha1.MachineStatus) { s.Plan = nil }, report.News},
		"a failure":                         {func(s *v1alpha1.MachineStatus) { s.HostFailure = &v1alpha1.Failure{Reason: "x"} }, report.News},
		"an empty list in place of no list": {func(s *v1alpha1.MachineStatus) { s.Plan.Findings = []v1alpha1.Finding{} }, report.None},
	} {
		t.Run(name, func(t *testing.T) {
			want := *(&v1alpha1.Machine{Status: processing("RestartUnit")}).DeepCopy()
			tc.change(&want.Status)
			assert.Equal(t, tc.want, report.Compare(processing("RestartUnit"), want.Status))
		})
	}
}

func TestDue(t *testing.T) {
	last := now
	at, ok := report.Due(report.News, processing(""), last)
	assert.True(t, ok)
	assert.True(t, at.Before(last), "news at once")
	at, ok = report.Due(report.Progress, processing(""), last)
	assert.True(t, ok)
	assert.Equal(t, last.Add(10*time.Second), at)
	at, ok = report.Due(report.None, processing(""), last)
	assert.True(t, ok, "a sign of life while an operation runs")
	assert.Equal(t, last.Add(30*time.Second), at)
	_, ok = report.Due(report.None, base(), last)
	assert.False(t, ok, "an idle host is silent")
}
