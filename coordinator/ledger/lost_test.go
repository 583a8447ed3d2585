package ledger_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASlotIsLostWhereAHostWorksOnAGrantThatTheLedgerDoesNotHave(t *testing.T) {
	of := func(grantID string) *v1alpha1.Slot { return &v1alpha1.Slot{Machine: "w1", GrantID: grantID} }
	ended := func(s *v1alpha1.MachineStatus) { accepted(s); s.History = []v1alpha1.HistoryEntry{{ID: "g1"}} }
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.MachineStatus)
		slot *v1alpha1.Slot
		lost bool
	}{
		"accepted, and its slot is there":           {accepted, of("g1"), false},
		"accepted, and no slot":                     {accepted, nil, true},
		"accepted, and the slot of another grant":   {accepted, of("g0"), true},
		"nobody accepted it: it can be taken back":  {func(s *v1alpha1.MachineStatus) { accepted(s); s.Accepted = nil }, nil, false},
		"what was accepted is another grant":        {func(s *v1alpha1.MachineStatus) { accepted(s); s.Accepted.GrantID = "g0" }, nil, false},
		"it was taken back":                         {func(s *v1alpha1.MachineStatus) { accepted(s); s.Grant.Void = true }, nil, false},
		"it has ended, and its slot is given away":  {ended, nil, false},
		"it has ended, and the next one has a slot": {ended, of("g2"), false},
		"nothing was ever granted":                  {func(*v1alpha1.MachineStatus) {}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine("w1", tc.edit)
			assert.Equal(t, tc.lost, ledger.Lost(&m, tc.slot))
		})
	}
}

// A backup may have the very epoch of the leader: then only the machines tell of the loss.
func TestALedgerThatWasPutBackWithTheSameEpochGetsItsLostSlotBack(t *testing.T) {
	working := machine("w1", accepted)
	ctx, c := t.Context(), api(t, &working)
	s := leading(t, c)
	l := read(t, s)
	require.Len(t, l.Spec.Slots, 1)
	l.Spec.Slots = nil
	require.NoError(t, c.Update(ctx, l))
	require.True(t, ledger.Lost(&working, nil))
	was := read(t, s).Spec.Epoch

	s.Forget(namespace)
	require.ErrorIs(t, s.Reserve(ctx, l, slot("w2")), ledger.ErrChanged, "nothing is given away meanwhile")
	require.NoError(t, s.Lead(ctx, namespace))
	l = read(t, s)
	assert.Greater(t, l.Spec.Epoch, was)
	require.Len(t, l.Spec.Slots, 1)
	assert.Equal(t, "g1", l.Spec.Slots[0].GrantID)
}
