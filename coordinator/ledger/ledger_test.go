package ledger_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const namespace = "refit"

func api(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func store(c client.Client) *ledger.Store {
	return &ledger.Store{Live: c, Writer: c, Now: metav1.Now}
}

func leading(t *testing.T, c client.Client) *ledger.Store {
	t.Helper()
	s := store(c)
	require.NoError(t, s.Lead(context.Background(), namespace))
	return s
}

func read(t *testing.T, s *ledger.Store) *v1alpha1.Ledger {
	t.Helper()
	l, err := s.Read(context.Background(), namespace)
	require.NoError(t, err)
	return l
}

func slot(machine string) v1alpha1.Slot {
	return v1alpha1.Slot{Machine: machine, GrantID: "g-" + machine, State: v1alpha1.SlotReserved, ReservedTime: metav1.Now()}
}

func TestOneReservationWinsAndTheOthersJudgeAgain(t *testing.T) {
	s := leading(t, api(t))
	seen := read(t, s)
	other := seen.DeepCopy()
	require.NoError(t, s.Reserve(context.Background(), seen, slot("w1")))
	require.ErrorIs(t, s.Reserve(context.Background(), other, slot("w2")), ledger.ErrChanged)
	require.ErrorIs(t, s.Reserve(context.Background(), read(t, s), slot("w1")), ledger.ErrChanged, "one slot for a machine")
	assert.Len(t, read(t, s).Spec.Slots, 1)
}

func TestSlotsAdvanceAndAreReleasedByGrant(t *testing.T) {
	ctx, s := context.Background(), leading(t, api(t))
	require.NoError(t, s.Reserve(ctx, read(t, s), slot("w1")))
	require.NoError(t, s.Advance(ctx, namespace, "g-w1", func(s *v1alpha1.Slot) { s.State = v1alpha1.SlotGranted }))
	assert.Equal(t, v1alpha1.SlotGranted, read(t, s).Spec.Slots[0].State)
	require.ErrorIs(t, s.Advance(ctx, namespace, "g-other", func(*v1alpha1.Slot) {}), ledger.ErrNoSlot)
	require.NoError(t, s.Release(ctx, namespace, "g-w1"))
	require.NoError(t, s.Release(ctx, namespace, "g-w1"), "releasing twice is fine")
	assert.Empty(t, read(t, s).Spec.Slots)
}

func TestAMarkOutlivesTheLeaderAndOnlyTheLeaderSetsIt(t *testing.T) {
	ctx, c := context.Background(), api(t)
	older := leading(t, c)
	seen := read(t, older)
	stale := seen.DeepCopy()
	require.NoError(t, older.Mark(ctx, seen, "refit.dev/x", "1"))
	require.ErrorIs(t, older.Mark(ctx, stale, "refit.dev/x", "2"), ledger.ErrChanged)
	require.NoError(t, older.Reserve(ctx, seen, slot("w1")), "the ledger that was marked is the one that is judged on")
	newer := leading(t, c)
	assert.Equal(t, "1", read(t, newer).Annotations["refit.dev/x"])
	require.ErrorIs(t, older.Mark(ctx, read(t, older), "refit.dev/x", "3"), ledger.ErrDeposed)
}

func TestAnOlderLeaderMayNotWriteAnyMore(t *testing.T) {
	ctx, c := context.Background(), api(t)
	older, newer := leading(t, c), leading(t, c)
	require.ErrorIs(t, older.Reserve(ctx, read(t, older), slot("w1")), ledger.ErrDeposed)
	require.ErrorIs(t, older.Release(ctx, namespace, "g"), ledger.ErrDeposed)
	require.NoError(t, newer.Reserve(ctx, read(t, newer), slot("w1")))
	assert.Greater(t, newer.Epoch(namespace), older.Epoch(namespace))
}

func TestNothingIsWrittenBeforeLead(t *testing.T) {
	c := api(t)
	s := leading(t, c)
	require.ErrorIs(t, store(c).Reserve(context.Background(), read(t, s), slot("w1")), ledger.ErrChanged)
}

func TestRaisingTheEpochDeposesNobodyInTheSameProcess(t *testing.T) {
	ctx, s := context.Background(), leading(t, api(t))
	require.NoError(t, s.Reserve(ctx, read(t, s), slot("w1")))
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(2)
		go func() { defer wg.Done(); _, err := s.RaiseEpoch(ctx, namespace); assert.NoError(t, err) }()
		go func() {
			defer wg.Done()
			assert.NoError(t, s.Advance(ctx, namespace, "g-w1", func(*v1alpha1.Slot) {}))
		}()
	}
	wg.Wait()
	assert.EqualValues(t, 21, s.Epoch(namespace))
	assert.EqualValues(t, 21, read(t, s).Spec.Epoch)
}

func TestALedgerRestoredUnderALeaderIsTakenOverAnew(t *testing.T) {
	working := machine("w1", accepted)
	ctx, c := context.Background(), api(t, &working)
	s := leading(t, c)
	_, err := s.RaiseEpoch(ctx, namespace)
	require.NoError(t, err)
	old := read(t, s)
	old.Spec = v1alpha1.LedgerSpec{Epoch: 1}
	require.NoError(t, c.Update(ctx, old))
	_, err = s.Read(ctx, namespace)
	require.ErrorIs(t, err, ledger.ErrChanged)
	require.ErrorIs(t, s.Reserve(ctx, old, slot("w2")), ledger.ErrChanged, "nothing is given away before it is")
	require.NoError(t, s.Lead(ctx, namespace))
	l := read(t, s)
	assert.EqualValues(t, 7, l.Spec.Epoch, "above every epoch that this leader ever had")
	require.Len(t, l.Spec.Slots, 1)
	assert.Equal(t, "g1", l.Spec.Slots[0].GrantID, "what the host has accepted has its place again")
}

func machine(name string, edit func(*v1alpha1.MachineStatus)) v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	edit(&m.Status)
	return m
}

func accepted(s *v1alpha1.MachineStatus) {
	s.Grant = &v1alpha1.Grant{ID: "g1", AssignmentID: "a1", PlanHash: "h", Epoch: 4}
	s.Accepted = &v1alpha1.Acceptance{GrantID: "g1"}
	s.Plan = &v1alpha1.PlanStatus{Hash: "h", Disruption: v1alpha1.DisruptionRestart}
}

func TestANewLeaderPutsTheLedgerRight(t *testing.T) {
	now := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		edit       func(*v1alpha1.MachineStatus)
		slots      int
		disruption v1alpha1.Disruption
		epoch      int64
	}{
		"nothing known":                       {func(*v1alpha1.MachineStatus) {}, 0, "", 1},
		"an agent that has seen a high epoch": {func(s *v1alpha1.MachineStatus) { s.ObservedEpoch = 41 }, 0, "", 42},
		"an accepted grant without a slot":    {accepted, 1, v1alpha1.DisruptionRestart, 5},
		"whose plan has changed since":        {func(s *v1alpha1.MachineStatus) { accepted(s); s.Plan.Hash = "other" }, 1, v1alpha1.DisruptionDrain, 5},
		"a grant that nobody accepted":        {func(s *v1alpha1.MachineStatus) { accepted(s); s.Accepted = nil }, 0, "", 5},
		"a void grant":                        {func(s *v1alpha1.MachineStatus) { accepted(s); s.Grant.Void = true }, 0, "", 5},
		"a grant whose end is in history": {func(s *v1alpha1.MachineStatus) {
			accepted(s)
			s.History = []v1alpha1.HistoryEntry{{ID: "g1"}}
		}, 0, "", 5},
	} {
		t.Run(name, func(t *testing.T) {
			l := v1alpha1.LedgerSpec{}
			ledger.Recover(&l, []v1alpha1.Machine{machine("w1", tc.edit)}, now)
			assert.Equal(t, tc.epoch, l.Epoch)
			require.Len(t, l.Slots, tc.slots)
			if tc.slots == 1 {
				assert.Equal(t, v1alpha1.Slot{Machine: "w1", MachineUID: "uid-w1", AssignmentID: "a1", GrantID: "g1", PlanHash: "h",
					Disruption: tc.disruption, State: v1alpha1.SlotAccepted, ReservedTime: now, GrantedTime: &now}, l.Slots[0])
			}
		})
	}
}

func TestARestoredSlotGivesWayToWhatTheHostHasAccepted(t *testing.T) {
	now := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct{ was, want v1alpha1.Slot }{
		"of an earlier grant":    {v1alpha1.Slot{Machine: "w1", GrantID: "g0", State: v1alpha1.SlotReserved}, v1alpha1.Slot{GrantID: "g1", State: v1alpha1.SlotAccepted}},
		"not granted yet":        {v1alpha1.Slot{Machine: "w1", GrantID: "g1", State: v1alpha1.SlotReserved}, v1alpha1.Slot{GrantID: "g1", State: v1alpha1.SlotAccepted}},
		"not accepted yet":       {v1alpha1.Slot{Machine: "w1", GrantID: "g1", State: v1alpha1.SlotGranted}, v1alpha1.Slot{GrantID: "g1", State: v1alpha1.SlotAccepted}},
		"accepted":               {v1alpha1.Slot{Machine: "w1", GrantID: "g1", State: v1alpha1.SlotAccepted}, v1alpha1.Slot{GrantID: "g1", State: v1alpha1.SlotAccepted}},
		"whose end is looked at": {v1alpha1.Slot{Machine: "w1", GrantID: "g1", State: v1alpha1.SlotVerifying}, v1alpha1.Slot{GrantID: "g1", State: v1alpha1.SlotVerifying}},
	} {
		t.Run(name, func(t *testing.T) {
			l := v1alpha1.LedgerSpec{Slots: []v1alpha1.Slot{tc.was}}
			ledger.Recover(&l, []v1alpha1.Machine{machine("w1", accepted)}, now)
			require.Len(t, l.Slots, 1)
			assert.Equal(t, tc.want.GrantID, l.Slots[0].GrantID)
			assert.Equal(t, tc.want.State, l.Slots[0].State)
		})
	}
}

func TestASlotThatIsThereIsNotInsertedTwice(t *testing.T) {
	l := v1alpha1.LedgerSpec{Epoch: 9, Slots: []v1alpha1.Slot{slot("w1")}}
	ledger.Recover(&l, []v1alpha1.Machine{machine("w1", accepted)}, metav1.Now())
	assert.Len(t, l.Slots, 1)
	assert.EqualValues(t, 10, l.Epoch)
}
