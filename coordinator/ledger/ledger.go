// Package ledger keeps the slots in flight. The Ledger object is the truth; the grant
// in a Machine's status is its projection. Every change is a compare-and-swap on the
// object's resourceVersion under the epoch of this leader, read live and never from a
// cache, so that two coordinators cannot both give the same place away.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// ErrDeposed says that another coordinator has taken over: this one must end.
	ErrDeposed = errors.New("another coordinator has taken over the ledger")
	// ErrChanged says that the ledger is not what the judgement was based on: judge again.
	ErrChanged = errors.New("the ledger has changed since it was read")
	// ErrNoSlot says that the slot is not in the ledger any more.
	ErrNoSlot = errors.New("no such slot in the ledger")
)

// Store reads and changes ledgers, one per namespace.
type Store struct {
	// Live reads from the API server, not from a cache.
	Live client.Reader
	// Writer writes ledgers.
	Writer client.Writer
	// Now is the clock.
	Now func() metav1.Time

	// writing serialises the changes of this process: a raised epoch is known before the next change is judged by it.
	writing sync.Mutex
	mu      sync.Mutex
	epochs  map[string]int64
	highest map[string]int64 // epochs that this process ever led under
	// last is each ledger as this process has seen or written it last.
	last map[string]*v1alpha1.Ledger
	// waiting are changes that the next write carries, by namespace.
	waiting map[string][]*pending
}

// pending is a change that waits for its write; done has its outcome.
type pending struct {
	change func(*v1alpha1.Ledger) error
	done   chan error
}

// Read returns the ledger of the namespace as it is on the API server. One that was put back
// under this leader, from a backup, is not returned: it has lost slots, and has others that
// have ended. The next Lead takes it over anew.
func (s *Store) Read(ctx context.Context, namespace string) (*v1alpha1.Ledger, error) {
	l, ours, known := &v1alpha1.Ledger{}, s.Epoch(namespace), s.Last(namespace) // both written before the ledger is read
	err := s.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: v1alpha1.LedgerName}, l)
	if err != nil {
		return nil, fmt.Errorf("reading ledger of namespace %s: %w", namespace, err)
	}
	switch {
	case l.Spec.Epoch < ours:
		s.Forget(namespace)
		return nil, fmt.Errorf("ledger of namespace %s was put back to epoch %d, and ours is %d: it is taken over anew: %w", namespace, l.Spec.Epoch, ours, ErrChanged)
	case older(l, known):
		s.Forget(namespace)
		return nil, fmt.Errorf("ledger of namespace %s was put back to version %s, and %s was known: it is taken over anew: %w",
			namespace, l.ResourceVersion, known.ResourceVersion, ErrChanged)
	}
	s.remember(l)
	return l, nil
}

// Last is the ledger as this process has seen or written it last; nil before. It has every
// slot that this process has reserved and not released, but may lack what a later leader
// has done: it shows that there is nothing to do, and is never a reason to do something. It
// is shared, and only read: in a large rollout a copy for each look would cost more than the look.
func (s *Store) Last(namespace string) *v1alpha1.Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[namespace]
}

// Seen tells of a ledger that an event has brought, so that whoever looks because of it finds
// it, be it another's doing.
func (s *Store) Seen(l *v1alpha1.Ledger) { s.remember(l) }

// remember keeps the ledger unless a newer one is known.
func (s *Store) remember(l *v1alpha1.Ledger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]*v1alpha1.Ledger{}
	}
	if was := s.last[l.Namespace]; !older(l, was) && !same(l, was) {
		s.last[l.Namespace] = l.DeepCopy()
	}
}

// same says that a is known already. After a backup was restored, a version may come up again with other slots.
func same(a, b *v1alpha1.Ledger) bool {
	return b != nil && a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.ResourceVersion != "" &&
		a.Spec.Epoch == b.Spec.Epoch && a.Spec.Stopped == b.Spec.Stopped &&
		slices.EqualFunc(a.Spec.Slots, b.Spec.Slots, func(x, y v1alpha1.Slot) bool { return x.GrantID == y.GrantID && x.State == y.State })
}

// older says that a was written before b, as far as their versions tell.
func older(a, b *v1alpha1.Ledger) bool {
	if b == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// Epoch of this leader in the namespace; 0 before Lead.
func (s *Store) Epoch(namespace string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochs[namespace]
}

func (s *Store) setEpoch(namespace string, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epochs == nil {
		s.epochs, s.highest = map[string]int64{}, map[string]int64{}
	}
	s.epochs[namespace], s.highest[namespace] = epoch, max(s.highest[namespace], epoch)
}

// Reserve adds slots, all or none, to the ledger as it was read for the judgement; a ledger
// that has changed since is refused with ErrChanged.
func (s *Store) Reserve(ctx context.Context, seen *v1alpha1.Ledger, slots ...v1alpha1.Slot) error {
	if len(slots) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.ours(seen); err != nil {
		return err
	}
	next := seen.DeepCopy()
	for _, slot := range slots {
		if find(next, slot.Machine) != nil {
			return fmt.Errorf("reserving a slot for %s: it holds one: %w", slot.Machine, ErrChanged)
		}
		next.Spec.Slots = append(next.Spec.Slots, slot)
	}
	next.Spec.Epoch = s.Epoch(seen.Namespace)
	switch err := s.Writer.Update(ctx, next); {
	case apierrors.IsConflict(err):
		return fmt.Errorf("reserving slots: %w", ErrChanged)
	case err != nil:
		return fmt.Errorf("reserving slots: %w", err)
	}
	*seen = *next
	s.remember(next)
	return nil
}

// Mark sets an annotation of the ledger as it was read for the judgement.
func (s *Store) Mark(ctx context.Context, seen *v1alpha1.Ledger, key, value string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.ours(seen); err != nil {
		return err
	}
	next := seen.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[key] = value
	next.Spec.Epoch = s.Epoch(seen.Namespace)
	switch err := s.Writer.Update(ctx, next); {
	case apierrors.IsConflict(err):
		return fmt.Errorf("marking the ledger with %s: %w", key, ErrChanged)
	case err != nil:
		return fmt.Errorf("marking the ledger with %s: %w", key, err)
	}
	*seen = *next
	s.remember(next)
	return nil
}

// Advance changes the slot with that grant.
func (s *Store) Advance(ctx context.Context, namespace, grantID string, change func(*v1alpha1.Slot)) error {
	return s.update(ctx, namespace, "advancing slot "+grantID, func(l *v1alpha1.Ledger) error {
		for i := range l.Spec.Slots {
			if l.Spec.Slots[i].GrantID == grantID {
				change(&l.Spec.Slots[i])
				return nil
			}
		}
		return ErrNoSlot
	})
}

// Release removes the slot with that grant; one that is gone already is fine.
func (s *Store) Release(ctx context.Context, namespace, grantID string) error {
	return s.update(ctx, namespace, "releasing slot "+grantID, func(l *v1alpha1.Ledger) error {
		kept := make([]v1alpha1.Slot, 0, len(l.Spec.Slots))
		for _, slot := range l.Spec.Slots {
			if slot.GrantID != grantID {
				kept = append(kept, slot)
			}
		}
		l.Spec.Slots = kept
		return nil
	})
}

// RaiseEpoch makes the epoch greater than that of every grant given so far, for a
// void grant that takes one of them back.
func (s *Store) RaiseEpoch(ctx context.Context, namespace string) (int64, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	raised := s.Epoch(namespace) + 1
	err := s.change(ctx, namespace, "raising the epoch", func(l *v1alpha1.Ledger) error {
		l.Spec.Epoch = raised
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.setEpoch(namespace, raised)
	return raised, nil
}

// update has a change written, together with all that have come to wait by then: in a large
// rollout many slots change while one write is under way.
func (s *Store) update(ctx context.Context, namespace, what string, change func(*v1alpha1.Ledger) error) error {
	p := &pending{change: change, done: make(chan error, 1)}
	s.mu.Lock()
	if s.waiting == nil {
		s.waiting = map[string][]*pending{}
	}
	s.waiting[namespace] = append(s.waiting[namespace], p)
	s.mu.Unlock()

	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	batch := s.waiting[namespace]
	delete(s.waiting, namespace)
	s.mu.Unlock()
	if len(batch) > 0 { // else an earlier writer has carried it
		s.commit(ctx, namespace, batch)
	}
	if err := <-p.done; err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// commit writes the changes in one. One that cannot be made says so to whoever wants it, and
// keeps no other one back. Nor does the end of the one caller that writes for all.
func (s *Store) commit(ctx context.Context, namespace string, batch []*pending) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	refused := make([]error, len(batch))
	err := s.change(ctx, namespace, "writing the ledger", func(l *v1alpha1.Ledger) error {
		made := 0
		for i, p := range batch {
			if refused[i] = p.change(l); refused[i] == nil {
				made++
			}
		}
		if made == 0 {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	for i, p := range batch {
		p.done <- cmp.Or(err, refused[i])
	}
}

// patience is how long a write for all may take, with its repetitions.
const patience = 30 * time.Second

var errNothing = errors.New("nothing to write")

func (s *Store) change(ctx context.Context, namespace, what string, change func(*v1alpha1.Ledger) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		l, err := s.Read(ctx, namespace)
		if err != nil {
			return err
		}
		if err := s.ours(l); err != nil {
			return err
		}
		l.Spec.Epoch = s.Epoch(namespace)
		if err := change(l); err != nil {
			return err
		}
		if err := s.Writer.Update(ctx, l); err != nil {
			return err //nolint:wrapcheck // wrapped below; the repetition asks what kind it is
		}
		s.remember(l)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// A ledger with a higher epoch belongs to a later leader; of a lower one see Read. Before
// this leader has taken the namespace over, or while it does so anew, nothing is changed.
func (s *Store) ours(l *v1alpha1.Ledger) error {
	epoch := s.Epoch(l.Namespace)
	if epoch == 0 {
		return fmt.Errorf("ledger of namespace %s is not taken over: %w", l.Namespace, ErrChanged)
	}
	if l.Spec.Epoch > epoch {
		return fmt.Errorf("ledger of namespace %s has epoch %d, ours is %d: %w", l.Namespace, l.Spec.Epoch, epoch, ErrDeposed)
	}
	return nil
}

func find(l *v1alpha1.Ledger, machine string) *v1alpha1.Slot {
	for i := range l.Spec.Slots {
		if l.Spec.Slots[i].Machine == machine {
			return &l.Spec.Slots[i]
		}
	}
	return nil
}
