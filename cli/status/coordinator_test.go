package status_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func lease(holder string, age time.Duration) *coordinationv1.Lease {
	lasts, renewed := int32(30), metav1.NewMicroTime(noon.Add(-age))
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &renewed}}
}

func TestAnEditThatNobodyHasSeenIsShownAsSuch(t *testing.T) {
	for name, tc := range map[string]struct {
		coordinator status.Coordinator
		says        string
	}{
		"nobody may look":               {status.Coordinator{}, "see whether the coordinator runs"},
		"no coordinator":                {status.Coordinator{Known: true}, "there is no coordinator (no Lease refit-system/refit-coordinator)"},
		"a lease that nobody ever held": {status.Coordinator{Known: true, Lease: &coordinationv1.Lease{}}, "there is no coordinator"},
		"one that died":                 {status.Coordinator{Known: true, Lease: lease("a", time.Hour), Now: noon}, "the coordinator has not answered since 2026-05-01T11:00:00Z"},
		"one that was ended":            {status.Coordinator{Known: true, Lease: lease("", time.Second), Now: noon}, "the coordinator has not answered since 2026-05-01T11:59:59Z"},
		"one that runs":                 {status.Coordinator{Known: true, Lease: lease("a", 10*time.Second), Now: noon}, "the coordinator runs, and has not come to it yet"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers", Generation: 5}}
			pool.Status.ObservedGeneration = 4
			pool.Status.Conditions = condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, "Complete", "all 2 machines are up to date")
			m := reported(func(s *v1alpha1.MachineStatus) {
				s.Conditions = condition(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "UpToDate", "")
				s.Conditions[0].ObservedGeneration = 7
			})
			m.Generation = 8
			var out bytes.Buffer
			require.NoError(t, status.Print(&out, []v1alpha1.MachineDeployment{pool}, []v1alpha1.Machine{*m}, tc.coordinator))
			assert.Contains(t, out.String(), "NotSeen: generation 5 not yet seen; ")
			assert.Contains(t, out.String(), "NotSeen: generation 8 not yet seen; ")
			assert.Contains(t, out.String(), tc.says)
			assert.NotContains(t, out.String(), "Complete")

			pool.Status.ObservedGeneration, m.Status.Conditions[0].ObservedGeneration = 5, 8
			out.Reset()
			require.NoError(t, status.Print(&out, []v1alpha1.MachineDeployment{pool}, []v1alpha1.Machine{*m}, tc.coordinator))
			assert.Contains(t, out.String(), "Complete: all 2 machines are up to date")
			assert.NotContains(t, out.String(), "not yet seen")
		})
	}
}

func TestAMachineThatNobodyEverJudgedIsNotShownAsWell(t *testing.T) {
	m := reported(func(*v1alpha1.MachineStatus) {})
	m.Generation = 1
	assert.Contains(t, status.WaitsFor(m, status.Coordinator{Known: true}), "NotSeen: generation 1 not yet seen; there is no coordinator")
}
