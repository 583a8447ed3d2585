package gates_test

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestWhoHoldsAMachineAndUntilWhen(t *testing.T) {
	const worker, plane = v1alpha1.RoleWorker, v1alpha1.RoleControlPlane
	rolling := func(edit func(*v1alpha1.RollingUpdate)) func(*v1alpha1.MachineDeployment) {
		return func(d *v1alpha1.MachineDeployment) {
			d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{}}
			edit(d.Spec.Strategy.RollingUpdate)
		}
	}
	soaking := func(begun time.Duration) Edit {
		return func(m *v1alpha1.Machine, n *corev1.Node, l *v1alpha1.LedgerSpec) {
			InSlot(v1alpha1.DisruptionDrain)(m, n, l)
			l.Slots[len(l.Slots)-1].UncordonedTime = &metav1.Time{Time: Now.Add(-begun)}
		}
	}
	soak := rolling(func(r *v1alpha1.RollingUpdate) {
		r.Soak, r.MaxUnavailable = &metav1.Duration{Duration: time.Hour}, ptrTo(intstr.FromInt32(2))
	})
	one := func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MaxUnavailable = ptrTo(intstr.FromInt32(1)) }
	pool := func(edits ...func(*v1alpha1.MachineDeployment)) *Builder {
		return New().Machine("cp1", "", plane).Deployment("w", edits...).Machine("w1", "w", worker)
	}
	for name, tc := range map[string]struct {
		fleet  *Builder
		reason string
		by     []string
		until  time.Duration
	}{
		"a budget is free again when the first machine has soaked": {
			pool(soak).Machine("w2", "w", worker, soaking(10*time.Minute)).Machine("w3", "w", worker, soaking(20*time.Minute)).Machine("w4", "w", worker),
			gates.ReasonBudgetExhausted, []string{"machinedeployment/w", "machine/w2", "machine/w3"}, 40 * time.Minute,
		},
		"nobody knows when one that works has ended": {
			pool().Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("w3", "w", worker),
			gates.ReasonBudgetExhausted, []string{"machinedeployment/w", "machine/w2"}, 0,
		},
		"a budget over pools is named with those it counts": {
			pool(soak).Machine("w2", "w", worker, NotReady).Machine("w3", "w", worker).Machine("w4", "w", worker).Budget("all", "w", one),
			gates.ReasonBudgetExhausted, []string{"machinedisruptionbudget/all", "machine/w2"}, 0,
		},
		"in-flight work": {
			New().Machine("cp1", "", plane).Deployment("w").Machine("w1", "w", worker, Plans(v1alpha1.DisruptionRestart)).Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionRestart)),
			gates.ReasonInFlightExhausted, []string{"machine/w2"}, 0,
		},
		"another domain": {
			New().Machine("cp1", "", plane).Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) { r.TopologyKey, r.MaxUnavailable = "zone", ptrTo(intstr.FromInt32(2)) })).
				Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a")).Machine("w3", "w", worker, Zone("a")),
			gates.ReasonDomainBusy, []string{"machine/w2", "machine/w3"}, 0,
		},
		"a canary that failed": {
			pool(rolling(func(r *v1alpha1.RollingUpdate) {
				r.Canary, r.FailureThreshold = &v1alpha1.Canary{Count: 1}, ptrTo(intstr.FromInt32(5))
			})).Machine("w0", "w", worker, Failed),
			gates.ReasonCanaryFailed, []string{"machine/w0"}, 0,
		},
		"a control plane that is lost": {
			New().Machine("w1", "", plane).Machine("cp2", "", plane, NotReady),
			gates.ReasonControlPlaneUnavailable, []string{"machine/cp2"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			m := f.Find("w1")
			v := gates.Check(f, m)
			require.NotNil(t, v)
			require.Equal(t, tc.reason, v.Reason, v.Message)
			held := gates.Hold(f, m, *v)
			assert.Equal(t, tc.by, held.By)
			if tc.until == 0 {
				assert.Zero(t, held.Until)
			} else {
				assert.Equal(t, Now.Add(tc.until), held.Until)
			}
		})
	}
}

func ptrTo[T any](v T) *T { return &v }
