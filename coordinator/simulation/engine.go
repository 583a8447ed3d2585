package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/coordinator/machine"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/refit-dev/refit/coordinator/rollout"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Engine runs one scenario.
type Engine struct {
	spec       Spec
	now, start time.Time
	until      time.Time
	world      *world
	board      *board.Board
	changes    fleet.Changes
	durations  *durations
	check      func(kind string, object, old map[string]any) error
	where      func(object, field string) string

	machines    *machine.Reconciler
	rollout     *rollout.Reconciler
	deployments *machinedeployment.Reconciler

	hosts   map[string]*host
	drains  *drainer
	book    *book
	checker *checker
	pending map[types.NamespacedName]func() // pods without a node

	queue    queue // what the world does
	wakes    wakes // when controllers want to look again
	scripted int   // events of the scenario that are still to come
	todo     todo
	look     time.Duration
	lookedAt time.Time // at the whole fleet
	counts   counts
	replaced int // pods
	sink     func(Entry)
	settled  func()           // told when all have looked; for tests
	again    func(error) bool // whether a controller that met this fault looks again, as it would anywhere else; for tests
	deposed  func(error)      // told when another coordinator has taken over; for tests
	err      error

	evictions int
}

// todo is who has to look at this moment.
type todo struct {
	machines    map[string]bool
	hosts       map[string]bool
	deployments map[string]bool
	urgent      bool // a deployment's wish has changed
	rollout     bool
	pods        bool
}

// New prepares a scenario. The entries of its transcript go to sink, in the order of time.
func New(s Scenario, sink func(Entry)) (*Engine, error) {
	e, err := newEngine(s, sink)
	return e, located(err, s.Where)
}

func newEngine(s Scenario, sink func(Entry)) (*Engine, error) {
	if sink == nil {
		sink = func(Entry) {}
	}
	e := &Engine{
		spec: s.Spec, start: DefaultStart, check: s.Check, where: s.Where, sink: sink, settled: func() {}, again: func(error) bool { return false },
		hosts: map[string]*host{}, pending: map[types.NamespacedName]func(){},
		todo:   todo{machines: map[string]bool{}, hosts: map[string]bool{}, deployments: map[string]bool{}},
		counts: newCounts(),
	}
	if s.Spec.Start != nil {
		e.start = s.Spec.Start.UTC().Truncate(time.Second)
	}
	e.now, e.until = e.start, e.start.Add(DefaultUntil)
	if u := s.Spec.Until; u != nil {
		if u.Duration <= 0 {
			return nil, &InputError{Field: "spec.until", Message: "has to be above 0, such as 24h"}
		}
		e.until = e.start.Add(u.Duration)
	}
	if l := s.Spec.Look; l != nil && l.Duration < 0 {
		return nil, &InputError{Field: "spec.look", Message: "has to be 0 or above, such as 10s: leave it out for a second for each 100 machines"}
	}
	var err error
	if e.durations, err = newDurations(s.Spec.Durations, s.Spec.Seed); err != nil {
		return nil, err
	}
	e.deposed = e.fail
	e.world = newWorld(s.Namespace, func() time.Time { return e.now })
	e.world.changed = e
	e.drains, e.book = &drainer{e: e, runs: map[string]*drainRun{}}, &book{e: e, pages: map[types.NamespacedName]*page{}}
	if err := e.fill(s); err != nil {
		return nil, err
	}
	if err := e.durations.known(func(name string) bool { return e.world.machines[name] != nil }); err != nil {
		return nil, err
	}
	e.look = lookInterval(s.Spec.Look, len(e.world.machines))
	return e, e.employ()
}

// lookInterval is how long a look at the whole fleet takes effect, where it is large.
func lookInterval(asked *metav1.Duration, machines int) time.Duration {
	if asked != nil {
		return asked.Duration
	}
	return time.Duration(machines/100) * time.Second
}

// employ sets up the controllers.
func (e *Engine) employ() error {
	api, err := newAPI(e.world)
	if err != nil {
		return err
	}
	cluster := kube{world: e.world}
	e.checker = newChecker(e, api, cluster)
	now := func() time.Time { return e.now }
	store := &ledger.Store{Live: api, Writer: api, Now: func() metav1.Time { return metav1.NewTime(e.now) }}
	e.board = &board.Board{Changed: e.boardChanged}
	deposed := func(err error) { e.deposed(err) }
	nobody := func(*corev1.Pod) bool { return false }
	e.machines = &machine.Reconciler{
		Client: api, Live: api, Nodes: api, Workload: cluster, Ledger: store, Board: e.board, Drains: e.drains,
		Forecasts: e.book, Events: recorder{e}, Now: now, Deposed: deposed, OwnPods: nobody, Changes: &e.changes,
	}
	e.rollout = &rollout.Reconciler{
		Cached: api, Live: api, CachedNodes: api, LiveNodes: api, Workload: cluster, Ledger: store, Board: e.board,
		Forecasts: e.book, Checks: e.checker, OwnPods: nobody, Now: now, Deposed: deposed,
	}
	e.deployments = &machinedeployment.Reconciler{
		Client: api, Live: api, Nodes: api, Ledger: store, Board: e.board, Events: recorder{e}, Now: now,
	}
	return nil
}

func (e *Engine) fail(err error) {
	if e.err == nil && err != nil {
		e.err = err
	}
}

// Now is the simulated time.
func (e *Engine) Now() time.Time { return e.now }

// Start is the time at which the clock began.
func (e *Engine) Start() time.Time { return e.start }

func (e *Engine) after(d time.Duration, do func()) { e.queue.add(e.now.Add(max(d, 0)), do) }

// wake has a machine looked at again.
func (e *Engine) wake(name string) { e.todo.machines[name] = true }

// lookSoon has a host look at its Machine.
func (e *Engine) lookSoon(name string) { e.todo.hosts[name] = true }

func (e *Engine) note(action, machine, reason, message string) {
	e.sink(Entry{Time: e.now, Action: action, Machine: machine, Reason: reason, Message: message})
}

// Run goes on until nothing is left to happen, and sums up.
func (e *Engine) Run(ctx context.Context) (Summary, error) {
	ctx = logr.NewContext(ctx, logr.Discard())
	outcome := e.run(ctx)
	if e.err != nil {
		return Summary{}, located(e.err, e.where)
	}
	return e.sum(outcome), ctx.Err()
}

func (e *Engine) run(ctx context.Context) Outcome {
	e.advance(e.now) // what happens at the very start comes before anybody looks
	known := e.world.version
	for ctx.Err() == nil {
		before := e.world.version
		e.settle(ctx)
		e.settled()
		if e.world.version != before {
			e.counts.lastChange = e.now
		}
		if e.world.version != known { // also by what has just happened, which nobody may have looked at yet
			known = e.world.version
			e.wakes.fruitful(e.now)
		}
		switch {
		case e.err != nil:
			return ""
		case e.scripted == 0 && e.arrived():
			return Completed
		case len(e.queue.items) == 0 && e.wakes.hopeless():
			return StoodStill
		}
		next, ok := e.nextTime()
		if !ok {
			return StoodStill
		}
		if next.After(e.until) {
			return TimedOut
		}
		e.advance(next)
	}
	return ""
}

// nextTime is when anything happens next.
func (e *Engine) nextTime() (time.Time, bool) {
	at, ok := e.queue.peek()
	if wake, there := e.wakes.peek(); there && (!ok || wake.Before(at)) {
		return wake, true
	}
	return at, ok
}

// advance moves the clock, and lets everything happen that is due.
func (e *Engine) advance(to time.Time) {
	e.now = to
	for do := e.queue.take(to); do != nil; do = e.queue.take(to) {
		do()
	}
	for _, key := range e.wakes.due(to) {
		e.rouse(key)
	}
}

func (e *Engine) rouse(key wakeKey) {
	switch key.kind {
	case "machine":
		e.wake(key.name)
	case "deployment":
		e.todo.deployments[key.name] = true
	case "rollout":
		e.todo.rollout = true
	}
}

// mostRounds in which everybody looks at one moment; more of them are a fault.
const mostRounds = 10000

// settle lets everybody look until nobody has to any more.
func (e *Engine) settle(ctx context.Context) {
	for range mostRounds {
		if e.err != nil || !e.round(ctx) {
			return
		}
	}
	e.fail(fmt.Errorf("at %s the controllers come to no end: machines %v", e.now.UTC().Format(time.RFC3339), slices.Sorted(maps.Keys(e.todo.machines))))
}

// round lets the first of those look who have to.
func (e *Engine) round(ctx context.Context) bool {
	switch t := &e.todo; {
	case t.pods:
		t.pods = false
		e.podsSettle()
	case t.urgent:
		t.urgent = false
		e.lookAtDeployments(ctx)
	case t.rollout && !e.early():
		t.rollout = false
		e.lookedAt = e.now
		request := ctrl.Request{NamespacedName: types.NamespacedName{Name: e.world.namespace}}
		e.conclude(wakeKey{kind: "rollout"}, func() (ctrl.Result, error) { return e.rollout.Reconcile(ctx, request) })
	case len(t.hosts) > 0:
		names := slices.Sorted(maps.Keys(t.hosts))
		clear(t.hosts)
		for _, name := range names {
			if h := e.hosts[name]; h != nil {
				h.look()
			}
		}
	case len(t.machines) > 0:
		e.lookAtMachines(ctx)
	case len(t.deployments) > 0 && !e.early():
		e.lookAtDeployments(ctx)
	default:
		return false
	}
	return true
}

// early says that the whole fleet was looked at a moment ago. It is looked at again soon.
func (e *Engine) early() bool {
	if e.look == 0 || e.lookedAt.IsZero() || e.lookedAt.Equal(e.now) {
		return false
	}
	next := e.lookedAt.Add(e.look)
	if !e.now.Before(next) {
		return false
	}
	e.wakes.set(wakeKey{kind: "rollout"}, next, e.now)
	return true
}

func (e *Engine) lookAtDeployments(ctx context.Context) {
	names := slices.Sorted(maps.Keys(e.todo.deployments))
	clear(e.todo.deployments)
	e.world.lending = true // a template is written into Machines, and then they are counted as they were read
	defer func() { e.world.lending, e.world.lent = false, false }()
	for _, name := range names {
		key := wakeKey{"deployment", name}
		e.conclude(key, func() (ctrl.Result, error) { return e.deployments.Reconcile(ctx, e.request(name)) })
	}
}

func (e *Engine) lookAtMachines(ctx context.Context) {
	names := slices.Sorted(maps.Keys(e.todo.machines))
	clear(e.todo.machines)
	for _, name := range names {
		key := wakeKey{"machine", name}
		e.conclude(key, func() (ctrl.Result, error) { return e.machines.Reconcile(ctx, e.request(name)) })
	}
}

func (e *Engine) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: e.world.namespace, Name: name}}
}

// immediately is what a controller asks for that wants to look again at once.
const immediately = time.Millisecond

// conclude runs one look of a controller, and notes when it wants to look again.
func (e *Engine) conclude(key wakeKey, look func() (ctrl.Result, error)) {
	result, err := look()
	switch d := result.RequeueAfter; {
	case err != nil && e.again(err):
		e.wakes.set(key, e.now.Add(time.Second), e.now)
	case err != nil:
		e.fail(fmt.Errorf("at %s, %s %s: %w", e.now.UTC().Format(time.RFC3339), key.kind, key.name, err))
	case d <= 0:
		e.wakes.drop(key)
	case d <= immediately:
		e.rouse(key)
	default:
		if key.kind == "machine" && e.soaking(key.name) {
			e.wakes.renew(key) // nothing changes until its end, and that comes by the clock
		}
		e.wakes.set(key, e.now.Add(roundUp(d)), e.now)
	}
}

// roundUp keeps the clock at whole seconds, as the API has times.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// boardChanged has a machine look at news for it. Where only the words of a verdict have
// changed, they are read at its next look.
func (e *Engine) boardChanged(key types.NamespacedName) {
	v, held := e.board.Verdict(key)
	if reason := e.counts.told[key.Name]; held && reason == v.Reason {
		return
	}
	e.counts.told[key.Name] = v.Reason
	e.wake(key.Name)
}

// podsSettle lets the disruption controller, the scheduler, the drains and the forecasts look at pods.
func (e *Engine) podsSettle() {
	e.world.settleBudgets()
	keys := slices.SortedFunc(maps.Keys(e.pending), compareKeys)
	for _, key := range keys {
		if retry := e.pending[key]; retry != nil {
			retry()
		}
	}
	e.drains.stepAll()
	e.book.news()
}

// verdictOf is what holds the machine now, if anything.
func (e *Engine) verdictOf(name string) (gates.Verdict, bool) {
	return e.board.Verdict(types.NamespacedName{Namespace: e.world.namespace, Name: name})
}

// nodeReady sets what the cluster says of a node, and its pods with it.
func (e *Engine) nodeReady(name string, status corev1.ConditionStatus, reason, message string) {
	n := e.world.nodes[name]
	if n == nil {
		return
	}
	was := isReady(n)
	e.world.updateNode(name, func(n *corev1.Node) { nodeReady(n, status, reason, message, e.now) })
	is := status == corev1.ConditionTrue
	if was == is {
		return
	}
	for _, p := range e.world.podsOf(name) {
		if !podFinished(p) {
			next := p.DeepCopy()
			e.world.setPodReady(next, is)
			e.world.putPod(next)
		}
	}
}

// arrived says that every machine in service is what its spec wants, and nothing is in flight.
func (e *Engine) arrived() bool {
	return len(e.counts.open) == 0 && len(e.world.slots()) == 0 && len(e.unfinished()) == 0
}

// unfinished are the MachineDeployments whose rollout is in trouble by itself: machines that
// never got the wish have nothing to arrive at.
func (e *Engine) unfinished() []*v1alpha1.MachineDeployment {
	var out []*v1alpha1.MachineDeployment
	for _, name := range slices.Sorted(maps.Keys(e.world.deployments)) {
		d := e.world.deployments[name]
		if meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionProgressing) {
			out = append(out, d)
		}
	}
	return out
}

func upToDate(m *v1alpha1.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == v1alpha1.ConditionUpToDate {
			return c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
		}
	}
	return false
}
