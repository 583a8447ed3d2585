package machinedeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/checks"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciler keeps Machines at their template and a MachineDeployment's status true.
type Reconciler struct {
	// Client of the cluster that has the Machines, with a cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Nodes reads the nodes' cluster from a cache.
	Nodes client.Reader
	// Ledger says who is in flight.
	Ledger *ledger.Store
	// Board takes the overridden fields, and has the verdicts of the gates.
	Board *board.Board
	// Events for people.
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time

	applied  applied
	kept     kept
	compiler checks.Compiler
	memory   fleet.Memory
}

// Reconcile applies the template to the machines that are this deployment's alone, and
// writes what it sees into status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &v1alpha1.MachineDeployment{}
	if err := r.Client.Get(ctx, req.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) //nolint:wrapcheck // says which object already
	}
	if !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	f, err := r.load(ctx, req.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s := &scope{read: d, deployment: d.DeepCopy(), fleet: f, pool: f.Pools[d.Name]}
	if s.pool == nil || s.pool.Deployment == nil {
		s.pool = &fleet.Pool{Name: d.Name, Deployment: d}
	}
	s.conflict = conflictOf(f, d.Name)
	revised, written := r.revise(ctx, s), r.applyTemplate(ctx, s)
	s.unwritten = written != nil // a revision that cannot be kept holds up no rollout
	err = errors.Join(revised, written)
	r.judge(s)
	return ctrl.Result{RequeueAfter: s.requeue}, errors.Join(err, r.writeStatus(ctx, s))
}

// scope is what one pass knows and decides.
type scope struct {
	read       *v1alpha1.MachineDeployment
	deployment *v1alpha1.MachineDeployment
	fleet      *fleet.Fleet
	pool       *fleet.Pool
	conflict   string
	requeue    time.Duration
	refused    string // why the API server refused the template, with the machine's name
	unwritten  bool   // a fault kept the template from a machine; the next pass tries again
}

func (r *Reconciler) load(ctx context.Context, namespace string) (*fleet.Fleet, error) {
	if err := r.Ledger.Lead(ctx, namespace); err != nil {
		return nil, fmt.Errorf("leading namespace %s: %w", namespace, err)
	}
	l, err := r.Ledger.Read(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the fleet: %w", err)
	}
	f, err := r.memory.Load(ctx, fleet.Readers{Machines: r.Client, Nodes: r.Nodes}, l, r.Now())
	if err != nil {
		return nil, fmt.Errorf("reading the fleet of namespace %s: %w", namespace, err)
	}
	return f, nil
}

// applyTemplate writes the template into each machine that may need it. A refusal by
// the API server is the user's to hear, and not a fault to be retried.
func (r *Reconciler) applyTemplate(ctx context.Context, s *scope) error {
	if s.conflict != "" {
		return nil
	}
	fields, err := fieldsOf(&s.deployment.Spec.Template.Spec)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range s.pool.Machines {
		key := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		state := stateOf(s.deployment, m.Machine)
		if !m.DeletionTimestamp.IsZero() || r.applied.saw(key, state) {
			continue
		}
		mark, err := markOf(&s.deployment.Spec.Template.Spec, m.Machine)
		if err != nil {
			return err
		}
		if r.applied.is(key, mark, state) {
			continue
		}
		if inSync(fields, m.Machine) {
			r.Board.SetOverrides(key, nil)
			r.applied.set(key, mark)
			continue
		}
		overrides, err := r.apply(ctx, &s.deployment.Spec.Template.Spec, m.Machine)
		switch {
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
			s.refused = fmt.Sprintf("machine %s: %v", m.Name, err)
		case err != nil:
			errs = append(errs, fmt.Errorf("writing the template into Machine %s: %w", m.Name, err))
		default:
			r.Board.SetOverrides(key, overrides)
			r.applied.set(key, mark)
		}
		if ctx.Err() != nil {
			break // the next pass goes on from here: what is written is known
		}
	}
	return errors.Join(errs...)
}

// applied remembers what was applied to which state of a Machine's spec, so that a
// pass over an idle fleet writes nothing. It is memory: a restart applies once more.
type applied struct {
	mu    sync.Mutex
	marks map[types.NamespacedName]uint64
	seen  map[types.NamespacedName]seenState
}

// seenState is the state of a deployment's template and of a Machine that was looked at. Without a version nothing tells.
type seenState struct {
	deployment types.UID
	generation int64
	machine    string
}

func stateOf(d *v1alpha1.MachineDeployment, m *v1alpha1.Machine) seenState {
	return seenState{d.UID, d.Generation, m.ResourceVersion}
}

// saw says that nothing has to be applied to the very state that was looked at last: of very
// many machines few have changed since.
func (a *applied) saw(key types.NamespacedName, state seenState) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return state.machine != "" && a.seen[key] == state
}

func (a *applied) is(key types.NamespacedName, mark uint64, state seenState) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.marks[key] != mark {
		return false
	}
	if a.seen == nil {
		a.seen = map[types.NamespacedName]seenState{}
	}
	a.seen[key] = state
	return true
}

func (a *applied) set(key types.NamespacedName, mark uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.marks == nil {
		a.marks = map[types.NamespacedName]uint64{}
	}
	a.marks[key] = mark
}

// markOf covers all on which the outcome of an apply depends: the template, the
// machine's spec, and who owns which field of it.
func markOf(template *v1alpha1.MachineTemplateSpec, m *v1alpha1.Machine) (uint64, error) {
	h := fnv.New64a()
	encoder := json.NewEncoder(h)
	values := []any{template, m.UID, m.Spec}
	for _, f := range m.ManagedFields {
		if f.Subresource == "" {
			values = append(values, f.Manager, f.FieldsV1)
		}
	}
	for _, v := range values {
		if err := encoder.Encode(v); err != nil {
			return 0, fmt.Errorf("hashing Machine %s: %w", m.Name, err)
		}
	}
	return h.Sum64(), nil
}
