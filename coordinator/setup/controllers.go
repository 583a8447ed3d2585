package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/checks"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/forecasts"
	"github.com/refit-dev/refit/coordinator/handover"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/coordinator/machine"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/refit-dev/refit/coordinator/rollout"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// appName labels the coordinator's own pods.
const appName = "refit-coordinator"

// parts are what the controllers share.
type parts struct {
	mgr      manager.Manager
	nodes    cluster.Cluster
	workload kubernetes.Interface
	ledger   *ledger.Store
	board    *board.Board
	drains   *drains.Runner
	book     *forecasts.Book
	checks   *checks.Book
	answers  chan event.GenericEvent
	budgets  chan event.GenericEvent
	word     chan event.GenericEvent
	deposed  func(error)
	seat     *handover.Seat
	ownPods  func(*corev1.Pod) bool
	identity machine.Identity
	mapper   mapper
}

func addControllers(ctx context.Context, mgr manager.Manager, nodes cluster.Cluster, identity machine.Identity, end context.CancelCauseFunc) error {
	workload, err := kubernetes.NewForConfig(unthrottled(nodes.GetConfig()))
	if err != nil {
		return fmt.Errorf("setting up a client for the nodes: %w", err)
	}
	seat, err := takeSeat(ctx, workload, end)
	if err != nil {
		return err
	}
	if err := indexMachines(ctx, mgr); err != nil {
		return err
	}
	p := &parts{
		mgr: mgr, nodes: nodes, workload: workload, word: make(chan event.GenericEvent, 1024), answers: make(chan event.GenericEvent, 64), budgets: make(chan event.GenericEvent, 64),
		deposed: func(err error) { end(err) }, seat: seat, ownPods: ownPods(mgr, nodes, seat), identity: identity, mapper: mapper{mgr.GetClient(), &fleet.Changes{}},
		ledger: &ledger.Store{Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Now: metav1.Now},
	}
	p.board = &board.Board{Changed: p.tell(ctx), BudgetChanged: p.tellBudget(ctx)}
	p.drains = &drains.Runner{Base: ctx, Client: workload, Changed: p.tell(ctx)}
	p.book = &forecasts.Book{Base: ctx, Client: workload, Changed: p.tell(ctx), Now: time.Now}
	p.checks = &checks.Book{Base: ctx, Nodes: nodes.GetClient(), Workload: workload, Changed: p.answered(ctx), Now: time.Now}
	for _, add := range []func() error{p.addMachine, p.addRollout, p.addMachineDeployment, p.addBudgets, p.addNodeMarks, p.addMetrics} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// unthrottled leaves out the client's limit per second: drains bound how many of their
// requests are open, and a second spent in a queue is a second longer that a node is away.
func unthrottled(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS, c.RateLimiter = -1, nil
	return c
}

// tell brings a machine's reconcile about.
func (p *parts) tell(ctx context.Context) func(types.NamespacedName) {
	return func(key types.NamespacedName) {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		select {
		case p.word <- event.GenericEvent{Object: m}:
		case <-ctx.Done():
		}
	}
}

// answered brings a pass over the namespace about.
func (p *parts) answered(ctx context.Context) func(string) {
	return func(namespace string) {
		select {
		case p.answers <- event.GenericEvent{Object: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}:
		case <-ctx.Done():
		}
	}
}

func (p *parts) addMachine() error {
	r := &machine.Reconciler{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Nodes: p.nodes.GetClient(), Workload: p.workload,
		Ledger: p.ledger, Board: p.board, Drains: p.drains, Forecasts: p.book, Events: p.mgr.GetEventRecorder(appName),
		Now: time.Now, Deposed: p.deposed, OwnPods: p.ownPods, Changes: p.mapper.changes, Identity: p.identity,
	}
	err := builder.ControllerManagedBy(p.mgr).Named("machine").
		For(&v1alpha1.Machine{}).
		Owns(&rbacv1.Role{}).Owns(&rbacv1.RoleBinding{}).Owns(&corev1.ServiceAccount{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(p.mapper.concerned), builder.WithPredicates(versionsChanged())).
		Watches(&v1alpha1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(p.mapper.machinesOf), builder.WithPredicates(wishChanged())).
		Watches(&v1alpha1.Ledger{}, p.slots()).
		WatchesRawSource(source.Kind(p.nodes.GetCache(), &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(p.mapper.seenNode), nodeChanged())).
		WatchesRawSource(source.Kind(p.nodes.GetCache(), &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(p.mapper.concernedByNode), plannersNodeChanged())).
		WatchesRawSource(source.Channel(p.word, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the Machine controller: %w", err)
	}
	return nil
}

func (p *parts) addRollout() error {
	r := &rollout.Reconciler{
		Cached: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(),
		CachedNodes: p.nodes.GetClient(), LiveNodes: p.nodes.GetAPIReader(), Workload: p.workload,
		Ledger: p.ledger, Board: p.board, Forecasts: p.book, Checks: p.checks, OwnPods: p.ownPods, Seat: p.seat,
		Now: time.Now, Deposed: p.deposed,
	}
	toNamespace := handler.EnqueueRequestsFromMapFunc(namespaceOf)
	err := builder.ControllerManagedBy(p.mgr).Named("rollout").
		Watches(&v1alpha1.Machine{}, toNamespace).
		Watches(&v1alpha1.MachineDeployment{}, toNamespace, builder.WithPredicates(poolChanged())).
		Watches(&v1alpha1.MachineDisruptionBudget{}, toNamespace, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Ledger{}, toNamespace).
		WatchesRawSource(source.Kind(p.nodes.GetCache(), &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(p.mapper.namespacesOfNode), nodeChanged())).
		WatchesRawSource(source.Channel(p.answers, toNamespace)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the rollout controller: %w", err)
	}
	return nil
}

func (p *parts) addMachineDeployment() error {
	r := &machinedeployment.Reconciler{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Nodes: p.nodes.GetClient(), Ledger: p.ledger, Board: p.board,
		Events: p.mgr.GetEventRecorder(appName), Now: time.Now,
	}
	all := handler.EnqueueRequestsFromMapFunc(p.mapper.deployments)
	err := builder.ControllerManagedBy(p.mgr).Named("machinedeployment").
		For(&v1alpha1.MachineDeployment{}).
		Owns(&appsv1.ControllerRevision{}).
		Watches(&v1alpha1.Machine{}, calmly(p.mapper.deployments)).
		Watches(&v1alpha1.Ledger{}, calmly(p.mapper.deployments)).
		Watches(&v1alpha1.MachineDeployment{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the MachineDeployment controller: %w", err)
	}
	return nil
}

func indexMachines(ctx context.Context, mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Machine{}, indexName, func(o client.Object) []string { return []string{o.GetName()} })
	if err != nil {
		return fmt.Errorf("indexing Machines by name: %w", err)
	}
	return nil
}
