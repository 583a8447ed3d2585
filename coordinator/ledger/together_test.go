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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slow holds the first update back until the others have come, and counts them all.
type slow struct {
	client.Client
	arrived chan struct{} // closed: the others may be written
	begun   chan struct{} // told when an update has begun
	mu      sync.Mutex
	updates int
}

func (s *slow) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	s.mu.Lock()
	s.updates++
	s.mu.Unlock()
	select {
	case s.begun <- struct{}{}:
	default:
	}
	<-s.arrived
	return s.Client.Update(ctx, o, opts...)
}

func TestChangesThatComeWhileOneIsWrittenAreWrittenTogether(t *testing.T) {
	ctx, c := t.Context(), api(t)
	names := []string{"w1", "w2", "w3", "w4", "w5"}
	first := leading(t, c)
	for _, name := range names {
		require.NoError(t, first.Reserve(ctx, read(t, first), slot(name)))
	}
	w := &slow{Client: c, arrived: make(chan struct{}), begun: make(chan struct{}, 1)}
	s := &ledger.Store{Live: c, Writer: c, Now: metav1.Now}
	require.NoError(t, s.Lead(ctx, namespace))
	s.Writer = w

	outcomes := make(chan error, len(names)+1)
	advance := func(grant string) {
		outcomes <- s.Advance(ctx, namespace, grant, func(s *v1alpha1.Slot) { s.State = v1alpha1.SlotGranted })
	}
	go advance("g-w1")
	<-w.begun
	for _, name := range names[1:] {
		go advance("g-" + name)
	}
	go advance("g-nobody")
	require.Eventually(t, func() bool { return s.Waiting(namespace) == len(names) }, 10*time.Second, time.Millisecond)
	close(w.arrived)
	refused := 0
	for range len(names) + 1 {
		if err := <-outcomes; err != nil {
			require.ErrorIs(t, err, ledger.ErrNoSlot)
			refused++
		}
	}
	assert.Equal(t, 1, refused, "a change that cannot be made keeps no other one back")
	assert.Equal(t, 2, w.updates)
	for _, slot := range read(t, s).Spec.Slots {
		assert.Equal(t, v1alpha1.SlotGranted, slot.State, slot.Machine)
	}
}

func TestSlotsAreReservedAllOrNone(t *testing.T) {
	ctx, s := t.Context(), leading(t, api(t))
	seen := read(t, s)
	require.NoError(t, s.Reserve(ctx, seen, slot("w1"), slot("w2")))
	require.ErrorIs(t, s.Reserve(ctx, seen, slot("w3"), slot("w2")), ledger.ErrChanged)
	assert.Len(t, read(t, s).Spec.Slots, 2)
	require.NoError(t, s.Reserve(ctx, seen), "none is nothing to write")
}

func TestTheLastLedgerIsNeverAnOlderOne(t *testing.T) {
	ctx, s := t.Context(), store(api(t))
	assert.Nil(t, s.Last(namespace), "nothing was seen yet")
	require.NoError(t, s.Lead(ctx, namespace))
	seen := read(t, s)
	require.NoError(t, s.Reserve(ctx, seen, slot("w1")))
	require.Len(t, s.Last(namespace).Spec.Slots, 1, "a reservation is seen at once")
	require.NoError(t, s.Release(ctx, namespace, "g-w1"))
	assert.Empty(t, s.Last(namespace).Spec.Slots)

	read(t, s).Spec.Slots = []v1alpha1.Slot{slot("w2")}
	assert.Empty(t, s.Last(namespace).Spec.Slots, "who has read it changes a copy")
	require.NoError(t, s.Reserve(ctx, read(t, s), slot("w3")))
	known, changed := s.Last(namespace), read(t, s)
	changed.Spec.Slots[0].State = v1alpha1.SlotGranted
	assert.Same(t, known, s.Last(namespace), "what is known already is not copied again")
	assert.Equal(t, v1alpha1.SlotReserved, known.Spec.Slots[0].State)
	s.Forget(namespace)
	assert.Nil(t, s.Last(namespace))
}

func TestWhoWritesForAllMayGoAndTheWriteIsMade(t *testing.T) {
	ctx, c := t.Context(), api(t)
	s := leading(t, c)
	require.NoError(t, s.Reserve(ctx, read(t, s), slot("w1"), slot("w2")))
	w := &slow{Client: c, arrived: make(chan struct{}), begun: make(chan struct{}, 1)}
	s.Writer = w
	own, leave := context.WithCancel(ctx)
	outcomes := make(chan error, 2)
	advance := func(ctx context.Context, grant string) {
		outcomes <- s.Advance(ctx, namespace, grant, func(s *v1alpha1.Slot) { s.State = v1alpha1.SlotGranted })
	}
	go advance(own, "g-w1")
	<-w.begun
	go advance(ctx, "g-w2")
	leave()
	close(w.arrived)
	require.NoError(t, <-outcomes)
	require.NoError(t, <-outcomes)
	for _, slot := range read(t, s).Spec.Slots {
		assert.Equal(t, v1alpha1.SlotGranted, slot.State, slot.Machine)
	}
}

func TestALedgerOfAnOlderVersionThanWasKnownIsTakenOverAnew(t *testing.T) {
	ctx, c := t.Context(), api(t)
	s := leading(t, c)
	require.NoError(t, s.Reserve(ctx, read(t, s), slot("w1")))
	put := read(t, s).DeepCopy() // of the same epoch, as a data store that was put back has it
	put.ResourceVersion, put.Spec.Slots = "1", nil
	s.Live = putBack{Client: c, ledger: put}
	_, err := s.Read(ctx, namespace)
	require.ErrorIs(t, err, ledger.ErrChanged)
	assert.Nil(t, s.Last(namespace), "what was known is not so")
	assert.Zero(t, s.Epoch(namespace), "nothing is given away before it is taken over")
}

// putBack has an older ledger than was written last.
type putBack struct {
	client.Client
	ledger *v1alpha1.Ledger
}

func (p putBack) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	p.ledger.DeepCopyInto(o.(*v1alpha1.Ledger))
	return nil
}

func TestALedgerThatSomeoneElseHasWrittenIsFoundByWhoeverLooksBecauseOfIt(t *testing.T) {
	ctx, c := t.Context(), api(t)
	s := leading(t, c)
	before := read(t, s)
	after := before.DeepCopy()
	after.Spec.Slots = []v1alpha1.Slot{slot("w1")}
	require.NoError(t, c.Update(ctx, after))
	s.Seen(after)
	require.Len(t, s.Last(namespace).Spec.Slots, 1)
	s.Seen(before)
	require.Len(t, s.Last(namespace).Spec.Slots, 1, "an event that comes late takes nothing back")
}
