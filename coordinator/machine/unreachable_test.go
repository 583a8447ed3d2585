package machine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

func TestAHostThatGoesSilentBeforeItBeginsIsWaitedForFiveMinutes(t *testing.T) {
	now := time.Date(2030, 1, 7, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	away := func(d time.Duration) *fleet.Node { return &fleet.Node{NotReadySince: ago(d)} }
	reserved := func(d time.Duration) *v1alpha1.Slot {
		return &v1alpha1.Slot{GrantID: "g", State: v1alpha1.SlotReserved, ReservedTime: ago(d)}
	}
	granted := func(r, g time.Duration) *v1alpha1.Slot {
		s := reserved(r)
		s.State, s.GrantedTime = v1alpha1.SlotGranted, ptr(ago(g))
		return s
	}
	for name, tc := range map[string]struct {
		slot  *v1alpha1.Slot
		node  *fleet.Node
		lost  bool
		again time.Duration
	}{
		"a node that is ready":                      {granted(time.Hour, time.Hour), &fleet.Node{Ready: true, NotReadySince: ago(time.Hour)}, false, 0},
		"no node":                                   {granted(time.Hour, time.Hour), nil, false, 0},
		"away for a while":                          {granted(time.Hour, time.Hour), away(2 * time.Minute), false, 3 * time.Minute},
		"away for five minutes":                     {granted(time.Hour, time.Hour), away(5 * time.Minute), true, 0},
		"away in its drain":                         {reserved(time.Hour), away(5 * time.Minute), true, 0},
		"down before its slot, and being drained":   {reserved(time.Hour), away(2 * time.Hour), false, 0},
		"down before its slot, and just granted":    {granted(time.Hour, time.Minute), away(2 * time.Hour), false, 4 * time.Minute},
		"down in the second of its slot":            {granted(time.Hour, time.Minute), away(time.Hour), false, 4 * time.Minute},
		"down before its slot, and granted in vain": {granted(time.Hour, 5*time.Minute), away(2 * time.Hour), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{}
			s := &scope{read: m.DeepCopy(), machine: m, view: &fleet.Machine{Machine: m, Slot: tc.slot, Node: tc.node}}
			r := &Reconciler{Now: func() time.Time { return now }}
			why, recorded := r.wentSilent(s)
			assert.Equal(t, tc.again, s.requeue)
			assert.False(t, recorded, "the failure is written before the slot is given back")
			require.Equal(t, tc.lost, why != nil)
			if !tc.lost {
				assert.Nil(t, m.Status.RolloutFailure)
				return
			}
			assert.Equal(t, fleet.ClassUnreachable, m.Status.RolloutFailure.Class)
			s.read = m.DeepCopy()
			_, recorded = r.wentSilent(s)
			assert.True(t, recorded)
			s.view.Node = &fleet.Node{Ready: true}
			_, err := r.welcome(context.Background(), s)
			require.NoError(t, err)
			assert.Nil(t, m.Status.RolloutFailure, "it is back")
		})
	}
}

func TestNoGrantIsWrittenForAHostThatWentAwayInItsDrain(t *testing.T) {
	slot := &v1alpha1.Slot{GrantID: "g", State: v1alpha1.SlotGranted, ReservedTime: metav1.NewTime(time.Unix(1000, 0))}
	m := &v1alpha1.Machine{}
	s := &scope{read: m, machine: m, view: &fleet.Machine{Machine: m, Slot: slot, Node: &fleet.Node{NotReadySince: metav1.NewTime(time.Unix(1001, 0))}}}
	next, err := (&Reconciler{}).grant(context.Background(), s)
	require.NoError(t, err)
	assert.Equal(t, stop, next)
	assert.Nil(t, m.Status.Grant)
}
