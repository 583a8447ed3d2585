package rollout

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/handover"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/refit-dev/refit/coordinator/standby"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciler gives the places of one namespace away; the request names the namespace.
type Reconciler struct {
	// Cached and Live read Machines, MachineDeployments and budgets.
	Cached, Live client.Reader
	// CachedNodes and LiveNodes read the nodes' cluster.
	CachedNodes, LiveNodes client.Reader
	// Workload is the cluster that has the nodes.
	Workload kubernetes.Interface
	// Ledger of the slots.
	Ledger *ledger.Store
	// Board takes the verdicts, and which kubelets are outside of their skew.
	Board *board.Board
	// Forecasts of the drains to come.
	Forecasts Forecaster
	// Checks of the pools.
	Checks Checker
	// OwnPods are the coordinator's own pods.
	OwnPods func(*corev1.Pod) bool
	// Seat is where the coordinator runs; nil outside of the nodes' cluster.
	Seat *handover.Seat
	// Now is the clock.
	Now func() time.Time
	// Deposed is called when another coordinator has taken over.
	Deposed func(error)

	memory fleet.Memory
}

// Reconcile judges on the cache first, which costs nothing; only when some machine
// would pass is the fleet read live and judged again, and that judgement is acted on.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	namespace := req.Name
	if err := r.Ledger.Lead(ctx, namespace); err != nil {
		return r.conclude(nil, fmt.Errorf("leading namespace %s: %w", namespace, err))
	}
	l, err := r.Ledger.Read(ctx, namespace)
	if apierrors.IsNotFound(err) {
		r.Ledger.Forget(namespace)
		r.Forecasts.Follow(namespace, nil)
	}
	if err != nil {
		return r.conclude(nil, err)
	}
	f, err := r.load(ctx, l, r.Cached, r.CachedNodes)
	if err != nil {
		return r.conclude(nil, err)
	}
	r.Board.SetSkews(namespace, f.Skews())
	if orphans(l, f) {
		return r.conclude(f, r.reclaim(ctx, l)) // the ledger's own change brings the next pass
	}
	r.Board.SetHalts(namespace, gates.Halts(f)) // before any slot is reserved: none is wanted back by an older word
	verdicts, passed := judge(f)
	if passed || len(standby.Moves(f)) > 0 {
		if f, err = r.load(ctx, l, r.Live, r.LiveNodes); err != nil {
			return r.conclude(nil, err)
		}
		if err := r.lost(f); err != nil {
			return r.conclude(nil, err)
		}
		if verdicts, err = r.reserve(ctx, l, f); err == nil {
			err = r.empty(ctx, l, f)
		}
	}
	r.Board.SetVerdicts(namespace, verdicts)
	r.Board.SetRoles(namespace, standby.Roles(f))
	r.Board.SetBudgets(namespace, gates.BudgetStatuses(f))
	r.follow(namespace, f)
	r.askChecks(f, verdicts)
	result, err := r.conclude(f, err)
	if d := askAgain(verdicts); err == nil && d > 0 && (result.RequeueAfter == 0 || d < result.RequeueAfter) {
		result.RequeueAfter = d
	}
	return result, err
}

// conclude asks for another pass when a machine waits for a moment in time.
func (r *Reconciler) conclude(f *fleet.Fleet, err error) (ctrl.Result, error) {
	switch {
	case errors.Is(err, ledger.ErrDeposed):
		r.Deposed(err)
		return ctrl.Result{}, err
	case errors.Is(err, errHandedOver): // whoever leads next goes on
		return ctrl.Result{}, nil
	case errors.Is(err, ledger.ErrChanged), apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	case err != nil || f == nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: nextMoment(f)}, nil
}

func (r *Reconciler) load(ctx context.Context, l *v1alpha1.Ledger, machines, nodes client.Reader) (*fleet.Fleet, error) {
	f, err := r.memory.Load(ctx, fleet.Readers{Machines: machines, Nodes: nodes}, l, r.Now())
	if err != nil {
		return nil, fmt.Errorf("reading the fleet of namespace %s: %w", l.Namespace, err)
	}
	if r.Seat != nil {
		f.Own = r.Seat.Node
	}
	r.recall(f)
	r.recallChecks(f)
	return f, nil
}

// lost has the ledger taken over anew where a host works on a grant whose slot is gone:
// nothing may be given away on a ledger that does not count it.
func (r *Reconciler) lost(f *fleet.Fleet) error {
	for _, m := range f.Machines {
		if ledger.Lost(m.Machine, m.Slot) {
			r.Ledger.Forget(m.Namespace)
			return fmt.Errorf("the ledger has lost the slot of Machine %s, and is taken over anew: %w", m.Name, ledger.ErrChanged)
		}
	}
	return nil
}

// judge says what holds each candidate, or that one of them would pass: then all are judged
// again on a live reading, and nobody needs to know what held the others.
func judge(f *fleet.Fleet) (verdicts map[string]gates.Verdict, passed bool) {
	verdicts = map[string]gates.Verdict{}
	for _, m := range order.Candidates(f) {
		if v := gates.Check(f, m); v != nil {
			verdicts[m.Name] = *v
		} else {
			return nil, true
		}
	}
	return verdicts, false
}

// reserve walks the candidates in order and reserves for each that passes, on a fleet
// that already has the slots reserved before it in this walk. They are written in one.
func (r *Reconciler) reserve(ctx context.Context, l *v1alpha1.Ledger, f *fleet.Fleet) (map[string]gates.Verdict, error) {
	verdicts, asked := map[string]gates.Verdict{}, 0
	var slots []v1alpha1.Slot
	for _, m := range order.Candidates(f) {
		if v := r.check(ctx, f, m, &asked); v != nil {
			verdicts[m.Name] = *v
			continue
		}
		if err := r.handOver(ctx, l, f, m, m.Status.Plan.Disruption); err != nil {
			return verdicts, err
		}
		slot, err := newSlot(m, metav1.NewTime(f.Now))
		if err != nil {
			return verdicts, err
		}
		m.Hold(&slot)
		slots = append(slots, slot)
	}
	if err := r.Ledger.Reserve(ctx, l, slots...); err != nil {
		return verdicts, fmt.Errorf("reserving for %s: %w", status.Count(len(slots), "machine"), err)
	}
	for _, slot := range slots {
		logr.FromContextOrDiscard(ctx).Info("Reserved a slot", "machine", slot.Machine, "grant", slot.GrantID, "disruption", slot.Disruption)
	}
	return verdicts, nil
}

func newSlot(m *fleet.Machine, now metav1.Time) (v1alpha1.Slot, error) {
	id, err := newGrantID()
	if err != nil {
		return v1alpha1.Slot{}, err
	}
	slot := v1alpha1.Slot{
		Machine: m.Name, MachineUID: string(m.UID), AssignmentID: m.Status.Assignment.ID,
		GrantID: id, PlanHash: m.Status.Plan.Hash, Disruption: m.Status.Plan.Disruption, StoodBy: m.StandsBy(),
		State: v1alpha1.SlotReserved, From: fleet.Observed(m.Status.Versions), ReservedTime: now, WaitingTime: &now,
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWaiting); c != nil && c.Status == metav1.ConditionTrue {
		slot.WaitingTime = c.LastTransitionTime.DeepCopy()
	}
	return slot, nil
}

func newGrantID() (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("drawing a grant id: %w", err)
	}
	return hex.EncodeToString(random[:]), nil
}
