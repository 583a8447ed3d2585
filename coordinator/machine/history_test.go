package machine

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) *metav1.Time {
	t := metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
	return &t
}

func TestHistorySaysHowLongEachPhaseTook(t *testing.T) {
	full := v1alpha1.Slot{WaitingTime: at(0), ReservedTime: *at(60), DrainedTime: at(90), GrantedTime: at(90), AppliedTime: at(150), UncordonedTime: at(170)}
	host := &v1alpha1.Operation{Phases: []v1alpha1.PhaseDuration{
		{Name: "Apply", Duration: metav1.Duration{Duration: 40 * time.Second}}, {Name: "Restart", Duration: metav1.Duration{Duration: 12 * time.Second}},
	}}
	undrained := v1alpha1.Slot{ReservedTime: *at(60), GrantedTime: at(60), AppliedTime: at(70)}
	for name, tc := range map[string]struct {
		slot v1alpha1.Slot
		op   *v1alpha1.Operation
		want map[string]int
	}{
		"all phases":                   {full, host, map[string]int{"Wait": 60, "Drain": 30, "Apply": 40, "Restart": 12, "Ready": 20}},
		"a host that measured nothing": {full, nil, map[string]int{"Wait": 60, "Drain": 30, "Apply": 60, "Ready": 20}},
		"no drain, failed, given back": {undrained, nil, map[string]int{"Apply": 10, "Ready": 130}},
		"a clock that went back":       {v1alpha1.Slot{WaitingTime: at(60), ReservedTime: *at(0)}, nil, map[string]int{"Wait": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]int{}
			for _, p := range durations(&tc.slot, tc.op, at(200).Time) {
				got[p.Name] = int(p.Duration.Seconds())
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestABlockedDrainIsTriedAgainLaterAndLater(t *testing.T) {
	var failure *v1alpha1.RolloutFailure
	var delays []time.Duration
	for range 8 {
		failure = nextDrainFailure(failure, &drain.Blocked{Reason: "EvictionBlocked", Message: "app/x"}, noon)
		delays = append(delays, failure.NextRetryTime.Sub(noon))
	}
	assert.Equal(t, []time.Duration{
		time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute,
	}, delays)
	assert.EqualValues(t, 8, failure.Attempts)
}

func TestALeaseCountsOnlyWhenItWasRenewedAfterTheOperation(t *testing.T) {
	var l leases
	assert.False(t, l.renewedSince("g", "10"), "seen for the first time: it may be from before")
	assert.False(t, l.renewedSince("g", "10"))
	assert.True(t, l.renewedSince("g", "11"))
	l.forget("g")
	assert.False(t, l.renewedSince("g", "11"), "a new coordinator waits for one renewal more")
}

func TestTheCoordinatorAppliesItsOwnFieldsAndNoOthers(t *testing.T) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w1", Namespace: "refit", UID: "u", ResourceVersion: "7"}}
	m.Status = v1alpha1.MachineStatus{
		Versions: &v1alpha1.ObservedVersions{Kubelet: "v1.37.2"}, Plan: &v1alpha1.PlanStatus{}, Accepted: &v1alpha1.Acceptance{},
		LastOperation: &v1alpha1.Operation{}, HostFailure: &v1alpha1.Failure{}, ObservedGeneration: 1, ObservedEpoch: 1,
		Host: &v1alpha1.HostIdentity{}, OS: &v1alpha1.ObservedOS{},
		Phase: v1alpha1.PhaseReady, Grant: &v1alpha1.Grant{ID: "g"},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionStaged}, {Type: v1alpha1.ConditionReady}},
	}
	u, err := applyConfiguration(m, owned(&m.Status))
	require.NoError(t, err)
	fields := u.Object["status"].(map[string]any)
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	assert.ElementsMatch(t, []string{"phase", "grant", "conditions"}, names)
	require.Len(t, fields["conditions"], 1)
	assert.Equal(t, "7", u.GetResourceVersion(), "every write is conditional on what was read")
	assert.EqualValues(t, "u", u.GetUID())
}
