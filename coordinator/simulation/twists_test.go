package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/coordinator/machine"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/refit-dev/refit/coordinator/rollout"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// twist is what goes wrong with coordinators, their ledger and reports, and what no scenario can say.
type twist struct {
	at, lasts time.Duration
	kind      twistKind
	pick      int // which machine of those that it may be about
}

type twistKind string

const (
	takenOver      twistKind = "another coordinator leads; the one before wakes later, and acts on what it knew"
	restarted      twistKind = "the coordinator starts anew"
	ledgerDeleted  twistKind = "the ledger is deleted"
	ledgerRestored twistKind = "the ledger is as it was a while ago, with its epoch"
	reportLost     twistKind = "a host has accepted, and finds after a restart that nothing was begun"
	reportLate     twistKind = "the end of an operation is reported late"
	deletedAtWork  twistKind = "a Machine that is worked on is deleted"
	forcedOut      twistKind = "a Machine that is worked on is deleted, with its finalizer"
)

var twistKinds = []twistKind{takenOver, restarted, ledgerDeleted, ledgerRestored, reportLost, reportLate, deletedAtWork, forcedOut}

// twister plays the twists of a schedule.
type twister struct {
	e       *Engine
	backups []v1alpha1.Ledger
	// restarting is the coordinator that leads.
	restarting bool
}

func (t *twister) plan(all []twist) {
	t.e.queue.add(t.e.start.Add(mended-time.Second), func() {
		for _, h := range t.e.hosts { // what was to fail and has not come to it yet would fail when nobody mends any more
			h.fails = nil
		}
	})
	for name, m := range t.e.world.machines {
		for round := range mendings { // one that is deleted at work goes when that has ended
			t.e.queue.add(t.e.start.Add(mended+time.Duration(round)*mendedAgain-time.Second), func() { t.adopt(name, m) })
		}
	}
	for _, tw := range all {
		t.e.scripted++
		t.e.queue.add(t.e.start.Add(tw.at), func() {
			t.e.scripted--
			t.e.note(ActionEvent, "", "Twist", string(tw.kind))
			t.play(tw)
		})
		if tw.kind == ledgerRestored {
			t.e.queue.add(t.e.start.Add(max(tw.at-tw.lasts, 0)), t.backUp)
		}
	}
}

// adopt is what a person does with a host that has lost its Machine: it gets another one.
func (t *twister) adopt(name string, was *v1alpha1.Machine) {
	e, h := t.e, t.e.hosts[name]
	if e.world.machines[name] != nil {
		return
	}
	m := was.DeepCopy()
	m.UID, m.ResourceVersion, m.Status.Versions = types.UID(name+"-adopted"), "", h.facts.Versions()
	e.fail(e.addMachine(m))
	e.hosts[name], h.planning = h, ""
}

// deposed is what the process of a coordinator does that another one has taken over from: it ends, and begins anew.
func (t *twister) deposed(error) {
	if t.restarting {
		return
	}
	t.restarting = true
	t.e.after(0, func() {
		t.restarting = false
		t.e.fail(t.e.employ())
		t.everybodyLooks()
	})
}

func (t *twister) backUp() {
	if l := t.e.world.ledger; l != nil {
		t.backups = append(t.backups, *l.DeepCopy())
	}
}

func (t *twister) play(tw twist) {
	e := t.e
	switch tw.kind {
	case takenOver:
		old := newSleeper(e)
		e.fail(e.employ())
		t.everybodyLooks()
		e.after(tw.lasts, func() {
			e.note(ActionEvent, "", "Twist", "the coordinator from before wakes")
			old.wake()
		})
	case restarted:
		e.fail(e.employ())
		t.everybodyLooks()
	case ledgerDeleted:
		e.world.ledger = nil
		t.everybodyLooks()
	case ledgerRestored:
		if len(t.backups) > 0 && e.world.ledger != nil {
			l := t.backups[0].DeepCopy()
			t.backups = t.backups[1:]
			l.Spec.Stopped = e.world.ledger.Spec.Stopped // a person sees to that
			e.world.putLedger(l)
			t.everybodyLooks()
		}
	case reportLost:
		if h := e.hosts[t.anyMachine(tw.pick)]; h != nil {
			h.mishap = func(op v1alpha1.Operation) { h.lose(op, tw.lasts) }
		}
	case reportLate:
		if h := e.hosts[t.anyMachine(tw.pick)]; h != nil {
			h.late = tw.lasts
		}
	case deletedAtWork:
		if name := t.atWork(tw.pick); name != "" {
			e.fail(e.remove(&Event{Object: "Machine/" + name}))
		}
	case forcedOut:
		if name := t.atWork(tw.pick); name != "" {
			e.world.removeMachine(name)
		}
	}
}

func (t *twister) anyMachine(pick int) string { return t.e.world.sorted[pick%len(t.e.world.sorted)] }

func (t *twister) atWork(pick int) string {
	if slots := t.e.world.slots(); len(slots) > 0 {
		if name := slots[pick%len(slots)].Machine; t.e.world.machines[name] != nil {
			return name
		}
	}
	return ""
}

func (t *twister) everybodyLooks() {
	for _, name := range t.e.world.sorted {
		t.e.wake(name)
	}
	for name := range t.e.world.deployments {
		t.e.todo.deployments[name] = true
	}
	t.e.todo.rollout = true
}

// repeated are the faults after which controllers look again.
func repeated(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, ledger.ErrChanged) || errors.Is(err, ledger.ErrDeposed) || apierrors.IsAlreadyExists(err)
}

// sleeper is a coordinator that does not run, with its caches as they were when it stopped.
type sleeper struct {
	e           *Engine
	names       []string
	machines    *machine.Reconciler
	rollout     *rollout.Reconciler
	deployments *machinedeployment.Reconciler
}

// staleAPI reads what was, and writes to what is.
type staleAPI struct {
	*api

	was *api
}

// Get implements client.Reader.
func (a staleAPI) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return a.was.Get(ctx, key, o, opts...)
}

// List implements client.Reader.
func (a staleAPI) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return a.was.List(ctx, list, opts...)
}

func (w *world) frozen() *world {
	was := *w
	was.machines, was.nodes, was.deployments = maps.Clone(w.machines), maps.Clone(w.nodes), maps.Clone(w.deployments)
	was.budgets, was.revisions, was.access = maps.Clone(w.budgets), maps.Clone(w.revisions), maps.Clone(w.access)
	was.list, was.nodeList, was.sorted = slices.Clone(w.list), slices.Clone(w.nodeList), slices.Clone(w.sorted)
	return &was
}

func newSleeper(e *Engine) *sleeper {
	live := &api{world: e.world, scheme: e.machines.Client.Scheme()}
	stale := staleAPI{api: live, was: &api{world: e.world.frozen(), scheme: live.scheme}}
	s := &sleeper{e: e, names: slices.Clone(e.world.sorted)}
	old, cluster, nobody := e.machines, kube{world: e.world}, e.machines.OwnPods
	deposed := func(error) {}
	words := &board.Board{}
	s.machines = &machine.Reconciler{
		Client: stale, Live: live, Nodes: stale, Workload: cluster, Ledger: old.Ledger, Board: words,
		Drains: &drainer{e: e, runs: map[string]*drainRun{}}, Forecasts: old.Forecasts, Events: old.Events, Now: old.Now, Deposed: deposed, OwnPods: nobody,
	}
	s.rollout = &rollout.Reconciler{
		Cached: stale, Live: live, CachedNodes: stale, LiveNodes: live, Workload: cluster, Ledger: old.Ledger, Board: words,
		Forecasts: e.rollout.Forecasts, Checks: e.rollout.Checks, OwnPods: nobody, Now: old.Now, Deposed: deposed,
	}
	s.deployments = &machinedeployment.Reconciler{
		Client: stale, Live: live, Nodes: stale, Ledger: old.Ledger, Board: words, Events: old.Events, Now: old.Now,
	}
	return s
}

// wake has every controller look, as they do before any of them has heard that another one leads.
func (s *sleeper) wake() {
	ctx := logr.NewContext(context.Background(), logr.Discard())
	request := func(name string) ctrl.Request { return s.e.request(name) }
	look := func(_ ctrl.Result, err error) {
		if err != nil && !errors.Is(err, ledger.ErrDeposed) && !repeated(err) {
			s.e.fail(err)
		}
	}
	for range 3 { // a look may ask for another one at once
		look(s.rollout.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: s.e.world.namespace}}))
		for _, name := range s.names {
			look(s.machines.Reconcile(ctx, request(name)))
		}
		for name := range s.e.world.deployments {
			look(s.deployments.Reconcile(ctx, request(name)))
		}
	}
}

// lose is a host that has accepted and began nothing: it looks at what runs, and says so.
func (h *host) lose(op v1alpha1.Operation, d time.Duration) {
	h.when(d, func() {
		now := metav1.NewTime(h.e.now)
		op.State, op.Reason, op.RolledBack, op.LastUpdateTime = v1alpha1.OperationFailed, "JournalLost", true, &now
		op.Description = "nothing was begun"
		h.e.note(ActionVerify, h.name, string(op.State), op.Description)
		h.report(func(s *v1alpha1.MachineStatus) { s.LastOperation = &op })
	})
}
