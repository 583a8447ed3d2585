package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Drainer runs drains that outlive a pass.
type Drainer interface {
	Ensure(req drains.Request) drains.State
	Forget(grantID string)
}

// Reconciler leads Machines through the handshake. All fields but Identity and Changes are needed.
type Reconciler struct {
	// Client of the cluster that has the Machines, with a cache.
	Client client.Client
	// Live reads Machines from the API server.
	Live client.Reader
	// Nodes reads the nodes' cluster from a cache.
	Nodes client.Reader
	// Workload is the cluster that has the nodes.
	Workload kubernetes.Interface
	// Ledger of the slots.
	Ledger *ledger.Store
	// Board with the word of the other controllers.
	Board *board.Board
	// Drains in flight.
	Drains Drainer
	// Forecasts of those to come.
	Forecasts Forecasts
	// Events for people.
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Deposed is called when another coordinator has taken over.
	Deposed func(error)
	// OwnPods are the coordinator's own pods: they leave a node last, and stay on the only node that could take them.
	OwnPods func(*corev1.Pod) bool
	// Changes of what the planner sees; nil: every look compares the whole fleet with the last.
	Changes *fleet.Changes
	// Identity of the agents.
	Identity Identity

	leases   leases
	beats    beats
	unjudged unjudged
	views    fleet.Views
}

type phase func(ctx context.Context, s *scope) (outcome, error)

// Reconcile reads as a table of contents: each phase either lets the next one work or
// ends the pass. Judgement and status write happen in every case.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.gather(ctx, req.NamespacedName)
	if err == nil && s == nil { // it is gone: one that comes under its name is another
		r.unjudged.end(req.NamespacedName)
		r.beats.end(req.NamespacedName)
	}
	if err != nil || s == nil {
		return r.conclude(&scope{}, err)
	}
	err = r.run(ctx, s, []phase{
		r.finalize, // a deleted Machine goes when its operation has ended
		r.access,   // finalizer; the agent's Role, RoleBinding and ServiceAccount
		r.link,     // the Node of the machine, and whether it is still the same one
		r.listen,   // the heartbeat of a host without a Node
		r.forget,   // a person has given up the host in its slot
		r.retry,    // a new spec or a retry clears failures
		r.welcome,  // a host that was lost before it began is back
		r.ended,    // a slot that was put back after its operation had ended
		r.withdraw, // a slot not accepted yet that is no longer wanted
		r.giveWay,  // a person's uncordon in the middle of an operation
		r.drain,    // Reserved: cordon, drain
		r.grant,    // Granted: permission, until accepted
		r.follow,   // Accepted: the host works
		r.verify,   // Verifying: health, uncordon, soak, history, release
		r.void,     // a grant without a slot
		r.unmark,   // a cordon of ours without a slot
		r.work,     // a standby that is to serve
		r.assign,   // the next hop
	})
	r.judge(s)
	written := r.writeStatus(ctx, s)
	if err == nil || (expected(err) && written != nil) {
		err = written // an unexpected error is never hidden behind a conflict
	}
	return r.conclude(s, err)
}

func (r *Reconciler) run(ctx context.Context, s *scope, phases []phase) error {
	for _, p := range phases {
		next, err := p(ctx, s)
		if err != nil {
			return err
		}
		switch next {
		case again:
			s.after(immediately)
			return nil
		case stop:
			return nil
		case goOn:
		}
	}
	return nil
}

// expected says that the next pass, on a fresh reading, puts it right by itself.
func expected(err error) bool {
	return err == nil || apierrors.IsConflict(err) || errors.Is(err, ledger.ErrChanged) || errors.Is(err, ledger.ErrNoSlot)
}

// conclude turns what is expected into another pass.
func (r *Reconciler) conclude(s *scope, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return s.result(), nil
	case errors.Is(err, ledger.ErrDeposed):
		r.Deposed(err)
		return ctrl.Result{}, err
	case expected(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

const conflictDelay = 50 * time.Millisecond

func (r *Reconciler) event(s *scope, kind, reason, action, message string) {
	r.Events.Eventf(s.machine, nil, kind, reason, action, "%s", message)
}

func wrapMachine(s *scope, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of Machine %s: %w", what, s.key, err)
}
