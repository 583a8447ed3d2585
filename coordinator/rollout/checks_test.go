package rollout

import (
	"fmt"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/checks"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oracle knows the answers that it is told, and counts what it is asked.
type oracle struct {
	known map[string]fleet.CheckOutcome
	asked []string
}

func (o *oracle) Known(q checks.Question) (fleet.CheckOutcome, bool) {
	out, ok := o.known[q.Check.Name]
	return out, ok
}

func (o *oracle) Ask(all []checks.Question) {
	for _, q := range all {
		o.asked = append(o.asked, q.Machine.Name+"/"+q.Check.Name)
	}
}

// holding is what holds each candidate, whoever else may go.
func holding(f *fleet.Fleet) map[string]gates.Verdict {
	verdicts := map[string]gates.Verdict{}
	for _, m := range order.Candidates(f) {
		if v := gates.Check(f, m); v != nil {
			verdicts[m.Name] = *v
		}
	}
	return verdicts
}

func TestChecksAreAskedOnlyForThoseThatNothingElseHolds(t *testing.T) {
	checked := func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{Checks: []v1alpha1.Check{{Name: "a"}, {Name: "b"}}}}
	}
	paused := Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true })
	f := New().Deployment("v").Deployment("w", checked).Machine("cp1", "", v1alpha1.RoleControlPlane, Plans(v1alpha1.DisruptionNone)).
		Machine("v1", "v", v1alpha1.RoleWorker).Machine("w1", "w", v1alpha1.RoleWorker).Machine("w2", "w", v1alpha1.RoleWorker, paused).Build()
	o := &oracle{known: map[string]fleet.CheckOutcome{"a": {State: fleet.CheckPassed, At: Now}}}
	r := &Reconciler{Checks: o}
	r.recallChecks(f)
	verdicts := holding(f)
	require.Equal(t, gates.ReasonCheckUnknown, verdicts["w1"].Reason)
	assert.Contains(t, verdicts["w1"].Message, `"b"`)
	r.askChecks(f, verdicts)
	assert.Equal(t, []string{"w1/a", "w1/b"}, o.asked)
	assert.Equal(t, checks.Every, askAgain(verdicts))

	o.known["b"], o.asked = fleet.CheckOutcome{State: fleet.CheckPassed, At: Now}, nil
	r.recallChecks(f)
	_, passed := judge(f)
	assert.True(t, passed)
	verdicts = holding(f)
	r.askChecks(f, verdicts)
	assert.Empty(t, o.asked, "nobody waits for an answer")
}

func TestABoundedNumberOfMachinesHasItsChecksAsked(t *testing.T) {
	b := New().Deployment("w", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{Checks: []v1alpha1.Check{{Name: "a"}}}}
	})
	for i := range 100 {
		b.Machine(fmt.Sprintf("w%03d", i), "w", v1alpha1.RoleWorker)
	}
	f, o := b.Build(), &oracle{}
	verdicts := map[string]gates.Verdict{}
	for _, m := range f.Machines {
		verdicts[m.Name] = gates.Verdict{Reason: gates.ReasonCheckFailed}
	}
	(&Reconciler{Checks: o}).askChecks(f, verdicts)
	assert.Len(t, o.asked, mostWaiting)
}
