package rollout

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNothingIsGivenAwayOnALedgerThatHasLostASlot(t *testing.T) {
	working := Of(func(m *v1alpha1.Machine) {
		m.Status.Grant = &v1alpha1.Grant{ID: "g-w1", AssignmentID: "a-w1"}
		m.Status.Accepted = &v1alpha1.Acceptance{GrantID: "g-w1"}
	})
	r := &Reconciler{Ledger: &ledger.Store{}}
	whole := New().Machine("w1", "", v1alpha1.RoleWorker, working, InSlot(v1alpha1.DisruptionDrain)).Machine("w2", "", v1alpha1.RoleWorker).Build()
	require.NoError(t, r.lost(whole))
	err := r.lost(New().Machine("w1", "", v1alpha1.RoleWorker, working).Machine("w2", "", v1alpha1.RoleWorker).Build())
	require.ErrorIs(t, err, ledger.ErrChanged)
	assert.ErrorContains(t, err, "w1")
}
