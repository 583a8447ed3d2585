package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestWhatIsWrittenNamesWhoStaysAwayAndWhoAsksHearsOfThoseInFlightToo(t *testing.T) {
	const worker = v1alpha1.RoleWorker
	ours := func(m *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
		n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordonedBy] = true, "g-of-before"
	}
	onAndOn := func(d *v1alpha1.MachineDeployment) {
		many := intstr.FromInt32(9)
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{FailureThreshold: &many}}
	}
	pool := func() *Builder {
		return New().Machine("cp1", "", v1alpha1.RoleControlPlane).Deployment("w", onAndOn).Machine("w1", "w", worker)
	}
	budget := func(b *Builder, key string) *Builder {
		one, all := intstr.FromInt32(1), intstr.FromInt32(9)
		b.Objects.Deployments[0].Spec.Strategy.RollingUpdate.MaxUnavailable = &all
		return b.Budget("all", "w", func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MaxUnavailable, s.TopologyKey = &one, key })
	}
	const full, mdb = "1 of 4 machines may be unavailable in MachineDeployment w, and none is left", "MachineDisruptionBudget all: 1 of 3 machines may be unavailable, and none is left"
	for name, tc := range map[string]struct {
		fleet           *Builder
		message, moment string
	}{
		"all stay away": {pool().Machine("w2", "w", worker, NotReady).Machine("w3", "w", worker, Cordoned).Machine("w4", "w", worker, Failed),
			full + ": w2 NotReady, w3 cordoned by someone else, w4 failed: VerifyFailed", ""},
		"one is in flight": {pool().Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("w3", "w", worker).Machine("w4", "w", worker),
			full, ": w2 being upgraded"},
		"both": {pool().Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("w3", "w", worker, NotReady).Machine("w4", "w", worker),
			full + ": w3 NotReady", ", w2 being upgraded"},
		"a restart in a slot is no failure": {pool().Machine("w2", "w", worker, NotReady, InSlot(v1alpha1.DisruptionRestart)).Machine("w3", "w", worker).Machine("w4", "w", worker),
			full, ": w2 NotReady"},
		"nor is a cordon of ours that is about to go": {pool().Machine("w2", "w", worker, ours).Machine("w3", "w", worker).Machine("w4", "w", worker),
			full, ": w2 cordoned by an earlier operation"},
		"by a budget, one stays away": {budget(pool().Machine("w2", "w", worker, NotReady).Machine("w3", "w", worker, InSlot(v1alpha1.DisruptionDrain)), ""),
			mdb + ": w2 NotReady", ", w3 being upgraded"},
		"by a budget, in another domain": {budget(pool().Machine("w2", "w", worker, Zone("b"), Cordoned).Machine("w3", "w", worker), "zone"),
			"MachineDisruptionBudget all: machines are unavailable in another zone: w2 cordoned by someone else", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := gates.Check(f, f.Find("w1"))
			require.NotNil(t, v)
			assert.Equal(t, gates.ReasonBudgetExhausted, v.Reason)
			assert.Equal(t, tc.message, v.Message)
			assert.Equal(t, tc.moment, v.Moment)
		})
	}
}
