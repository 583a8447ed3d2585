package rollout

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/forecasts"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// seer answers with what it is told to, and counts.
type seer struct {
	answer   fleet.Forecast
	asked    []string
	followed []forecasts.Request
}

func (*seer) Known(types.NamespacedName, int64) (fleet.Forecast, bool) {
	return fleet.Forecast{}, false
}

func (s *seer) Ask(_ context.Context, req forecasts.Request) fleet.Forecast {
	s.asked = append(s.asked, req.Machine.Name)
	return s.answer
}

func (s *seer) Follow(_ string, next []forecasts.Request) { s.followed = next }

func many(n int) *fleet.Fleet {
	b := New().Machine("cp1", "", v1alpha1.RoleControlPlane, Plans(v1alpha1.DisruptionNone))
	for i := range n {
		b = b.Machine(fmt.Sprintf("w%04d", i), "", v1alpha1.RoleWorker)
	}
	return b.Build()
}

func TestOnlyTheMachinesThatAreNextAreFollowedHoweverManyWait(t *testing.T) {
	f := many(5000)
	s := &seer{}
	(&Reconciler{Forecasts: s}).follow("refit", f)
	require.Len(t, s.followed, mostNext)
	assert.Equal(t, "w0000", s.followed[0].Machine.Name)

	for i := range 100 { // those that can never be drained do not take the places of the others
		f.Find(fmt.Sprintf("w%04d", i)).Forecast = &fleet.Forecast{Status: metav1.ConditionFalse}
	}
	next := upcoming(order.Candidates(f))
	assert.Len(t, next, mostNext+mostImpossible)
	assert.Equal(t, "w0115", next[len(next)-1].Name)
}

func TestEachGrantIsAskedAboutAndAPassAsksABoundedNumber(t *testing.T) {
	f := many(40)
	s := &seer{answer: fleet.Forecast{Status: metav1.ConditionFalse, Reason: "PDBOverlap"}}
	r := &Reconciler{Forecasts: s}
	asked := 0
	reasons := map[string]int{}
	for _, m := range order.Candidates(f) {
		if v := r.check(t.Context(), f, m, &asked); v != nil {
			reasons[v.Reason]++
		}
	}
	assert.Len(t, s.asked, mostAsked)
	assert.Equal(t, map[string]int{gates.ReasonDrainImpossible: mostAsked, gates.ReasonForecastPending: 40 - mostAsked}, reasons)

	assert.Equal(t, time.Second, askAgain(map[string]gates.Verdict{"a": {Reason: gates.ReasonForecastPending}, "b": {Reason: gates.ReasonDrainImpossible}}))
	assert.Equal(t, forecasts.Keeps, askAgain(map[string]gates.Verdict{"a": {Reason: gates.ReasonDrainImpossible}}))
	assert.Zero(t, askAgain(map[string]gates.Verdict{"a": {Reason: gates.ReasonPaused}}))

	s.answer.Status, asked = metav1.ConditionUnknown, 0
	assert.Nil(t, r.check(t.Context(), f, f.Find("w0039"), &asked), "what could not be found out is found out by the drain")
	assert.Nil(t, r.check(t.Context(), f, f.Find("cp1"), &asked))
	assert.Len(t, s.asked, mostAsked+1, "a plan without a drain is not asked about")
}
