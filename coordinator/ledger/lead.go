package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lead takes the namespace over, once per process: it live-reads ledger and machines,
// puts right what a crash or a restored backup has torn apart, and writes the ledger
// under a new epoch. Nothing may be granted before it has returned.
func (s *Store) Lead(ctx context.Context, namespace string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.Epoch(namespace) != 0 {
		return nil
	}
	machines := &v1alpha1.MachineList{}
	if err := s.Live.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("reading the machines of namespace %s to take over its ledger: %w", namespace, err)
	}
	l, err := s.readOrNew(ctx, namespace)
	if err != nil {
		return err
	}
	s.mu.Lock()
	l.Spec.Epoch = max(l.Spec.Epoch, s.highest[namespace])
	s.mu.Unlock()
	notes := Recover(&l.Spec, machines.Items, s.Now())
	if err := s.createOrUpdate(ctx, l); err != nil {
		return fmt.Errorf("taking over the ledger of namespace %s: %w", namespace, err)
	}
	s.setEpoch(namespace, l.Spec.Epoch)
	logr.FromContextOrDiscard(ctx).Info("Leading namespace", "namespace", namespace, "epoch", l.Spec.Epoch,
		"slots", len(l.Spec.Slots), "recovered", notes)
	return nil
}

// Forget makes the next Lead recover the namespace again, for a ledger that was deleted under us.
func (s *Store) Forget(namespace string) {
	s.setEpoch(namespace, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, namespace)
}

func (s *Store) readOrNew(ctx context.Context, namespace string) (*v1alpha1.Ledger, error) {
	l, err := s.Read(ctx, namespace)
	if apierrors.IsNotFound(err) {
		return &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.LedgerName}}, nil
	}
	return l, err
}

func (s *Store) createOrUpdate(ctx context.Context, l *v1alpha1.Ledger) error {
	if l.ResourceVersion == "" {
		return s.Writer.Create(ctx, l) //nolint:wrapcheck // wrapped by the caller
	}
	return s.Writer.Update(ctx, l) //nolint:wrapcheck // wrapped by the caller
}

// Recover puts a ledger right from what the machines say, and says what it did:
//
//	accepted grant without a slot     re-inserted: work may be under way on the host
//	accepted grant, another's slot    replaced: it was restored, and has ended or was taken back
//	accepted grant, an earlier state  brought forward: nothing is drained or granted again
//	slot without a grant              kept; the machine's reconcile resumes it or takes it back
//	slot of a machine that is gone    kept; the rollout uncordons its node and reclaims it
//
// The epoch becomes greater than every one that an agent has seen, so that a restored
// backup cannot mute the agents.
func Recover(l *v1alpha1.LedgerSpec, machines []v1alpha1.Machine, now metav1.Time) []string {
	var notes []string
	for i := range machines {
		m := &machines[i]
		l.Epoch = max(l.Epoch, epochSeen(m))
		if UnderWay(m) {
			notes = append(notes, recoverSlot(l, m, now)...)
		}
	}
	l.Epoch++
	return notes
}

// recoverSlot gives a machine whose host works the slot for it.
func recoverSlot(l *v1alpha1.LedgerSpec, m *v1alpha1.Machine, now metav1.Time) (notes []string) {
	at := slices.IndexFunc(l.Slots, func(s v1alpha1.Slot) bool { return s.Machine == m.Name })
	switch {
	case at < 0:
		l.Slots = append(l.Slots, slotFor(m, now))
		return []string{"re-inserted slot of " + m.Name}
	case l.Slots[at].GrantID != m.Status.Grant.ID:
		l.Slots[at] = slotFor(m, now)
		return []string{"replaced slot of " + m.Name}
	case l.Slots[at].State == v1alpha1.SlotReserved || l.Slots[at].State == v1alpha1.SlotGranted:
		l.Slots[at].State, l.Slots[at].GrantedTime = v1alpha1.SlotAccepted, cmp.Or(l.Slots[at].GrantedTime, &now)
		return []string{"brought slot of " + m.Name + " forward"}
	}
	return nil
}

func epochSeen(m *v1alpha1.Machine) int64 {
	epoch := m.Status.ObservedEpoch
	if m.Status.Assignment != nil {
		epoch = max(epoch, m.Status.Assignment.Epoch)
	}
	if m.Status.Grant != nil {
		epoch = max(epoch, m.Status.Grant.Epoch)
	}
	return epoch
}

// Lost says that a host works on a grant whose slot is not in the ledger: the ledger was put
// back under a leader that has the same epoch. The Machine is read after the ledger, and live.
func Lost(m *v1alpha1.Machine, slot *v1alpha1.Slot) bool {
	return UnderWay(m) && (slot == nil || slot.GrantID != m.Status.Grant.ID)
}

// UnderWay says that the agent has accepted the grant and that its end is not in history yet.
func UnderWay(m *v1alpha1.Machine) bool {
	g, a := m.Status.Grant, m.Status.Accepted
	if g == nil || g.Void || a == nil || a.GrantID != g.ID {
		return false
	}
	return !slices.ContainsFunc(m.Status.History, func(h v1alpha1.HistoryEntry) bool { return h.ID == g.ID })
}

// The plan's disruption is unknown if the plan has changed since; a drain is assumed, which charges the budget.
func slotFor(m *v1alpha1.Machine, now metav1.Time) v1alpha1.Slot {
	disruption := v1alpha1.DisruptionDrain
	if p := m.Status.Plan; p != nil && p.Hash == m.Status.Grant.PlanHash {
		disruption = p.Disruption
	}
	return v1alpha1.Slot{
		Machine: m.Name, MachineUID: string(m.UID),
		AssignmentID: m.Status.Grant.AssignmentID, GrantID: m.Status.Grant.ID, PlanHash: m.Status.Grant.PlanHash,
		Disruption: disruption, State: v1alpha1.SlotAccepted,
		ReservedTime: now, GrantedTime: &now,
	}
}
