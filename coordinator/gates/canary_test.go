package gates_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// birds is a pool with canaries that bears three failures and three machines away.
func birds(count int32, edits ...func(*v1alpha1.RollingUpdate)) func(*v1alpha1.MachineDeployment) {
	return rolling(func(r *v1alpha1.RollingUpdate) {
		r.Canary, r.MaxUnavailable, r.FailureThreshold = &v1alpha1.Canary{Count: count}, at(3), at(3)
		for _, e := range edits {
			e(r)
		}
	})
}

func perZone(r *v1alpha1.RollingUpdate) { r.TopologyKey, r.Canary.PerTopologyDomain = "zone", true }

func noAssignment(m *v1alpha1.Machine) { m.Status.Assignment = nil }

func unhealthy(m *v1alpha1.Machine) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse})
}

// kubelet is what runs; the wish is v1.37.2, on the way to which the plan goes to v1.36.9.
func onTheWay(kubelet string) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.Versions.Kubelet, m.Status.Assignment.Target.Kubelet = kubelet, "v1.36.9"
		m.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
	})
}

// passing are the machines of the pool that may go now.
func passing(f *fleet.Fleet) string {
	var out []string
	for _, m := range f.Pools["w"].Machines {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
		if order.Ready(m) && (c == nil || c.ObservedGeneration != m.Generation) && gates.Check(f, m) == nil {
			out = append(out, m.Name)
		}
	}
	return strings.Join(out, " ")
}

func TestCanariesGoFirstAndAlone(t *testing.T) {
	base := func(edits ...func(*v1alpha1.MachineDeployment)) *Builder {
		return New().Machine("cp1", "", plane).Deployment("w", edits...)
	}
	three := func(b *Builder, w1 ...Edit) *Builder {
		return b.Machine("w1", "w", worker, w1...).Machine("w2", "w", worker).Machine("w3", "w", worker)
	}
	drain := InSlot(v1alpha1.DisruptionDrain)
	retry := Of(func(m *v1alpha1.Machine) { m.Status.RolloutFailure = drainBlocked(time.Minute) })
	stalled := Of(func(m *v1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue})
	})
	paused := Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true })
	away := Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService })
	for name, tc := range map[string]struct {
		fleet *Builder
		want  string
	}{
		"without canaries all may go":               {three(base(birds(1, func(r *v1alpha1.RollingUpdate) { r.Canary = nil }))), "w1 w2 w3"},
		"the first by name":                         {three(base(birds(1))), "w1"},
		"two":                                       {three(base(birds(2))), "w1 w2"},
		"more than there are":                       {three(base(birds(9))), "w1 w2 w3"},
		"none beside one in its slot":               {three(base(birds(1)), drain), ""},
		"the second beside the first":               {three(base(birds(2)), drain), "w2"},
		"all the others when it is through":         {three(base(birds(1)), done), "w2 w3"},
		"not while it soaks in its slot":            {three(base(birds(1)), done, drain), ""},
		"not while it is unwell":                    {three(base(birds(1)), done, NotReady), ""},
		"nor unhealthy":                             {three(base(birds(1)), done, Of(unhealthy)), ""},
		"one that was up to date for an older spec": {three(base(birds(1)), done, Of(func(m *v1alpha1.Machine) { m.Generation, m.Status.Assignment.Generation = 2, 2 })), "w1"},
		"one that failed stops the others":          {three(base(birds(1)), Failed), ""},
		"and the canary beside it":                  {three(base(birds(2)), Failed), ""},
		"a failure after the canaries does not":     {base(birds(1)).Machine("w1", "w", worker, Failed).Machine("w2", "w", worker, done).Machine("w3", "w", worker), "w3"},
		"one that is paused is replaced":            {three(base(birds(1)), paused), "w2"},
		"one that is out of service":                {three(base(birds(1)), away), "w2"},
		"one that failed and is out of service":     {three(base(birds(1)), Failed, away), "w2"},
		"one that somebody has cordoned":            {three(base(birds(1)), Cordoned), "w2"},
		"one that is refused for good":              {three(base(birds(1)), stalled), "w2"},
		"one whose drain is tried again later":      {three(base(birds(1)), retry), "w2"},
		"unless it is up: paused in its slot":       {three(base(birds(1)), paused, drain), ""},
		"one that cannot be next yet":               {three(base(birds(1)), Of(noAssignment)), "w2"},
		"one that is down comes last":               {three(base(birds(1)), NotReady), "w2"},
		"and first where nobody else is":            {base(birds(1)).Machine("w1", "w", worker, NotReady).Machine("w2", "w", worker, paused), "w1"},
		"nobody left to be a canary":                {base(birds(2)).Machine("w1", "w", worker, done).Machine("w2", "w", worker, paused), ""},
		"fewer left than should be":                 {base(birds(3)).Machine("w1", "w", worker, done).Machine("w2", "w", worker, paused).Machine("w3", "w", worker), "w3"},
		"in each domain, at once": {
			base(birds(1, perZone)).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("b")).Machine("w3", "w", worker, Zone("a")).Machine("w4", "w", worker, Zone("a")), "w1 w3"},
		"nobody before those of all domains": {
			base(birds(1, perZone)).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("b")).Machine("w3", "w", worker, Zone("a"), done).Machine("w4", "w", worker, Zone("a")), "w1"},
		"then one domain after another": {
			base(birds(1, perZone)).Machine("w1", "w", worker, Zone("b"), done).Machine("w2", "w", worker, Zone("b")).Machine("w3", "w", worker, Zone("a"), done).Machine("w4", "w", worker, Zone("a")), "w4"},
		"wherever they are, of the whole pool": {
			base(birds(1, perZone, func(r *v1alpha1.RollingUpdate) { r.Canary.PerTopologyDomain = false })).
				Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a")), "w1"},
		"budgets hold for canaries too": {three(base(birds(2, func(r *v1alpha1.RollingUpdate) { r.MaxUnavailable = at(1) })), drain), ""},
		"halfway, one that is through the same hop is through": {
			base(birds(1)).Machine("w1", "w", worker, onTheWay("v1.36.9"), Of(noAssignment)).Machine("w2", "w", worker, onTheWay("v1.35.1")), "w2"},
		"and one that is not, is not": {
			base(birds(1)).Machine("w1", "w", worker, onTheWay("v1.35.1"), drain).Machine("w2", "w", worker, onTheWay("v1.35.1")), ""},
		"not before the template is written": {
			three(base(birds(1), func(d *v1alpha1.MachineDeployment) { d.Generation = 2 }), done), ""},
		"nor where it is refused": {
			three(base(birds(1), func(d *v1alpha1.MachineDeployment) {
				d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "TemplateRefused"}}
			}), done), ""},
		"by hand the one that is named": {
			base(birds(1), func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.Type = v1alpha1.StrategyManual }).Machine("w1", "w", worker).
				Machine("w2", "w", worker, Of(func(m *v1alpha1.Machine) { m.Annotations = map[string]string{v1alpha1.AnnotationNext: "1"} })), "w2"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, passing(tc.fleet.Build())) })
	}
}

func TestTheControlPlaneHasNoCanaries(t *testing.T) {
	f := New().Deployment("w", birds(1)).Machine("cp1", "w", plane, Of(noAssignment)).Machine("cp2", "w", plane).Machine("w1", "w", worker).Build()
	assert.Nil(t, judgedBy(t, f, "cp2", "canary"))
	assert.Nil(t, judgedBy(t, f, "w1", "canary"), "and no member of it is one")
}

func TestWhoWaitsForCanariesHearsOfThem(t *testing.T) {
	f := New().Machine("cp1", "", plane).Deployment("w", birds(1)).
		Machine("w1", "w", worker, InSlot(v1alpha1.DisruptionDrain), Of(func(m *v1alpha1.Machine) { m.Status.Phase = v1alpha1.PhaseSoaking })).Machine("w2", "w", worker).Build()
	v := gates.Check(f, f.Find("w2"))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonCanaryPending, v.Reason)
	assert.Contains(t, v.Text(), "MachineDeployment w go first, alone: w1 (Soaking)")

	f = New().Machine("cp1", "", plane).Deployment("w", birds(1)).Machine("w1", "w", worker, Failed).Machine("w2", "w", worker).Build()
	v = gates.Check(f, f.Find("w2"))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonCanaryFailed, v.Reason)
	assert.Contains(t, v.Message, "w1 (VerifyFailed)")
}
