package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
)

func TestAPassGoesOnAfterItsSlotIsGrantedOnlyOnWhatIsStillSo(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(t *testing.T, c client.Client, m *v1alpha1.Machine, l *v1alpha1.Ledger)
		want    outcome
	}{
		"nothing has changed": {func(*testing.T, client.Client, *v1alpha1.Machine, *v1alpha1.Ledger) {}, goOn},
		"the Machine was written since it was read": {func(t *testing.T, c client.Client, m *v1alpha1.Machine, _ *v1alpha1.Ledger) {
			now := m.DeepCopy()
			now.Spec.Paused = true
			require.NoError(t, c.Update(t.Context(), now))
		}, again},
		"the Machine is gone": {func(t *testing.T, c client.Client, m *v1alpha1.Machine, _ *v1alpha1.Ledger) {
			require.NoError(t, c.Delete(t.Context(), m.DeepCopy()))
		}, again},
		"the stop switch was thrown": {func(t *testing.T, c client.Client, _ *v1alpha1.Machine, l *v1alpha1.Ledger) {
			now := l.DeepCopy()
			now.Spec.Stopped = true
			require.NoError(t, c.Update(t.Context(), now))
		}, again},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, key := t.Context(), types.NamespacedName{Namespace: "fleet", Name: "w1"}
			scheme := runtime.NewScheme()
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}).Build()
			store := &ledger.Store{Live: c, Writer: c, Now: metav1.Now}
			require.NoError(t, store.Lead(ctx, key.Namespace))
			l, err := store.Read(ctx, key.Namespace)
			require.NoError(t, err)
			require.NoError(t, store.Reserve(ctx, l, v1alpha1.Slot{Machine: key.Name, GrantID: "g", State: v1alpha1.SlotReserved}))
			m := &v1alpha1.Machine{}
			require.NoError(t, c.Get(ctx, key, m))
			s := &scope{key: key, read: m, machine: m.DeepCopy(), view: &fleet.Machine{Slot: l.Spec.Slots[0].DeepCopy()}}
			r := &Reconciler{Live: c, Ledger: store, Now: time.Now}

			tc.between(t, c, m, l)
			got, err := r.advance(ctx, s, func(slot *v1alpha1.Slot) { slot.State = v1alpha1.SlotGranted })
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			l, err = store.Read(ctx, key.Namespace)
			require.NoError(t, err)
			assert.Equal(t, v1alpha1.SlotGranted, l.Spec.Slots[0].State, "the ledger has it in any case")
			if got == goOn {
				assert.Equal(t, v1alpha1.SlotGranted, s.slot().State)
			} else {
				assert.Equal(t, v1alpha1.SlotReserved, s.slot().State, "no grant in this pass")
			}
		})
	}
}
