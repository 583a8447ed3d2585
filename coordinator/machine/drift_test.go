package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// B76: drift is told when it comes, with what the host says of it, and not while it lasts.
func TestDriftIsToldOnceAndOnlyWhenItIsDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *scope, upToDate, drifted *metav1.Condition)
		told   bool
	}{
		"a host that left its spec":        {change: func(*scope, *metav1.Condition, *metav1.Condition) {}, told: true},
		"one that left it before":          {change: func(_ *scope, u, _ *metav1.Condition) { u.Status = "False" }},
		"one that is back":                 {change: func(s *scope, _, _ *metav1.Condition) { s.wishMet = true }},
		"an outdated one":                  {change: func(_ *scope, _, d *metav1.Condition) { d.Status = "False" }},
		"a new spec":                       {change: func(s *scope, _, _ *metav1.Condition) { s.machine.Generation = 3 }},
		"a host that knows the old spec":   {change: func(_ *scope, _, d *metav1.Condition) { d.ObservedGeneration = 1 }},
		"a host that has not reported yet": {change: func(s *scope, _, _ *metav1.Condition) { s.read.Status.Conditions = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			read := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionUpToDate, Status: "True", ObservedGeneration: 2},
				{Type: v1alpha1.ConditionDrifted, Status: "True", ObservedGeneration: 2, Message: "package kubelet came with: apt install kubelet"},
			}}}
			read.Generation = 2
			s := &scope{read: read, machine: read.DeepCopy()}
			tc.change(s, &read.Status.Conditions[0], &read.Status.Conditions[1])
			recorder := events.NewFakeRecorder(3)
			(&Reconciler{Events: recorder}).tellDrift(s)
			var told []string
			for len(recorder.Events) > 0 {
				told = append(told, <-recorder.Events)
			}
			if !tc.told {
				assert.Empty(t, told)
				return
			}
			assert.Equal(t, []string{"Warning Drifted package kubelet came with: apt install kubelet"}, told)
		})
	}
}
