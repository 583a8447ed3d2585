package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
)

// noDrains has none in flight.
type noDrains struct{ begun int }

func (d *noDrains) Ensure(drains.Request) drains.State { d.begun++; return drains.State{} }
func (*noDrains) Forget(string)                        {}

func TestASlotThatIsPutBackAfterItsOperationHadEndedIsReleasedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		state    v1alpha1.SlotState
		ran      string // the operation in history
		released bool
	}{
		"as it was when it was reserved":            {v1alpha1.SlotReserved, "g", true},
		"as it was when it was granted":             {v1alpha1.SlotGranted, "g", true},
		"as it was when it was accepted":            {v1alpha1.SlotAccepted, "g", true},
		"its operation has not ended":               {v1alpha1.SlotReserved, "an earlier one", false},
		"it is verified, which ends it by its rule": {v1alpha1.SlotVerifying, "g", false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, key := t.Context(), types.NamespacedName{Namespace: "fleet", Name: "cp1"}
			scheme := runtime.NewScheme()
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			m.Status.History = []v1alpha1.HistoryEntry{{ID: tc.ran}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).Build()
			store := &ledger.Store{Live: c, Writer: c, Now: metav1.Now}
			require.NoError(t, store.Lead(ctx, key.Namespace))
			l, err := store.Read(ctx, key.Namespace)
			require.NoError(t, err)
			require.NoError(t, store.Reserve(ctx, l, v1alpha1.Slot{Machine: key.Name, GrantID: "g", State: tc.state}))
			view := &fleet.Machine{Machine: m.DeepCopy(), Slot: l.Spec.Slots[0].DeepCopy(), Node: &fleet.Node{Name: key.Name, Ready: true}}
			begun := &noDrains{}
			r := &Reconciler{
				Ledger: store, Drains: begun, Now: time.Now,
				Workload: kubefake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}),
			}
			s := &scope{key: key, read: m, machine: view.Machine, view: view}
			next, err := r.ended(ctx, s)
			require.NoError(t, err)
			l, err = store.Read(ctx, key.Namespace)
			require.NoError(t, err)
			assert.Equal(t, tc.released, len(l.Spec.Slots) == 0)
			assert.Equal(t, tc.released, next == again)
			assert.Zero(t, begun.begun)
		})
	}
}
