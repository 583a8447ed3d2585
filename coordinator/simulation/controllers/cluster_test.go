package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/forecasts"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/coordinator/machine"
	"github.com/refit-dev/refit/coordinator/nodemarks"
	"github.com/refit-dev/refit/coordinator/rollout"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	namespace = "refit"
	before    = "v1.36.3"
	after     = "v1.37.2"
)

var errCrash = errors.New("the coordinator is killed")

// cluster is the world: two in-memory API servers, a clock, hosts, one coordinator.
type cluster struct {
	t     *testing.T
	now   time.Time
	api   client.WithWatch // as the test and the agents use it
	kube  *kubefake.Clientset
	hosts []*host
	fault *fault

	coordinator *coordinator
	restarts    int
}

// fault kills the coordinator at its n-th write, before or after the effect.
type fault struct {
	at     int
	late   bool
	writes int
	struck bool
	looks  func() // after each write
}

func (f *fault) around(effect func() error) error {
	if f.looks != nil {
		defer f.looks()
	}
	f.writes++
	if f.struck || f.writes != f.at {
		return effect()
	}
	f.struck = true
	if f.late {
		_ = effect()
	}
	return errCrash
}

func newCluster(t *testing.T, f *fault) *cluster {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := &cluster{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), fault: f, kube: newKube()}
	c.api = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.Machine{}, &v1alpha1.MachineDeployment{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: mergeConditions}).Build()
	c.start()
	return c
}

// newKube is the nodes' API without field management, which nothing here looks at and
// which costs most of the time.
func newKube() *kubefake.Clientset {
	tracker := clienttesting.NewObjectTracker(clientgoscheme.Scheme, clientgoscheme.Codecs.UniversalDecoder())
	kube := &kubefake.Clientset{}
	kube.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	return kube
}

// mergeConditions does what a real API server does by the CRD's schema, which the one
// in memory does not know: conditions are merged by type, and each writer has its own.
func mergeConditions(ctx context.Context, cl client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return err
	}
	m := &v1alpha1.Machine{}
	if err := cl.Get(ctx, client.ObjectKeyFromObject(u), m); err != nil {
		return err
	}
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for i := range m.Status.Conditions {
		agents := slices.Contains(v1alpha1.AgentConditions, m.Status.Conditions[i].Type)
		if agents == (options.FieldManager == "refit-agent") {
			continue
		}
		other, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.Status.Conditions[i])
		if err != nil {
			return err
		}
		conditions = append(conditions, other)
	}
	if err := unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	return cl.SubResource(sub).Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
}

// coordinator is one life of the program: what it knows in memory dies with it.
type coordinator struct {
	machines *machine.Reconciler
	rollout  *rollout.Reconciler
	marks    *nodemarks.Reconciler
	deposed  error
}

func (c *cluster) start() { c.coordinator = c.newCoordinator() }

func (c *cluster) newCoordinator() *coordinator {
	co := &coordinator{}
	faulty := interceptor.NewClient(c.api, interceptor.Funcs{
		Create: func(ctx context.Context, cl client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.fault.around(func() error { return cl.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, cl client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return c.fault.around(func() error { return cl.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, cl client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return c.fault.around(func() error { return cl.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, cl client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return c.fault.around(func() error { return cl.Apply(ctx, o, opts...) })
		},
		SubResourceApply: func(ctx context.Context, cl client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return c.fault.around(func() error { return cl.SubResource(sub).Apply(ctx, o, opts...) })
		},
	})
	clock := func() time.Time { return c.now }
	store := &ledger.Store{Live: c.api, Writer: faulty, Now: func() metav1.Time { return metav1.NewTime(c.now) }}
	word, recorder := &board.Board{}, events.NewFakeRecorder(10000)
	deposed := func(err error) { co.deposed = err }
	nodes := nodeReader{c.kube}
	co.machines = &machine.Reconciler{
		Client: faulty, Live: c.api, Nodes: nodes, Workload: c.faultyKube(), Ledger: store, Board: word,
		Drains: &drainer{c: c}, Forecasts: hopeful{}, Events: recorder, Now: clock, Deposed: deposed,
	}
	co.rollout = &rollout.Reconciler{
		Cached: c.api, Live: c.api, CachedNodes: nodes, LiveNodes: nodes, Workload: c.faultyKube(),
		Ledger: store, Board: word, Forecasts: hopeful{}, Now: clock, Deposed: deposed,
	}
	co.marks = &nodemarks.Reconciler{Machines: c.api, Nodes: nodes, Workload: c.faultyKube(), Ledger: store, Now: clock, Deposed: deposed}
	return co
}

// faultyKube is the nodes' API with the fault in front of its writes.
func (c *cluster) faultyKube() *kubefake.Clientset {
	f := &kubefake.Clientset{}
	f.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		var out runtime.Object
		invoke := func() (err error) { out, err = c.kube.Invokes(a, nil); return err }
		if slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			return true, out, errors.Join(invoke(), nil)
		}
		err := c.fault.around(invoke)
		return true, out, err
	})
	return f
}

// hopeful foresees that every drain can succeed, and remembers nothing.
type hopeful struct{}

func (hopeful) Known(types.NamespacedName, int64) (fleet.Forecast, bool) {
	return fleet.Forecast{}, false
}

func (hopeful) Ask(context.Context, forecasts.Request) fleet.Forecast {
	return fleet.Forecast{Status: metav1.ConditionTrue}
}

func (hopeful) Follow(string, []forecasts.Request) {}

// drainer takes one look to empty a node; it knows nothing after a restart.
type drainer struct {
	c     *cluster
	known map[string]bool
}

func (d *drainer) Ensure(req drains.Request) drains.State {
	if d.known == nil {
		d.known = map[string]bool{}
	}
	if !d.known[req.GrantID] {
		d.known[req.GrantID] = true
		return drains.State{Message: "2 of 2 pods left"}
	}
	return drains.State{Done: true, Message: "2 pods evicted"}
}

func (d *drainer) Forget(id string) { delete(d.known, id) }

// nodeReader is the cache of the nodes' cluster.
type nodeReader struct{ kube *kubefake.Clientset }

func (r nodeReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	n, err := r.kube.CoreV1().Nodes().Get(ctx, key.Name, metav1.GetOptions{})
	if err == nil {
		n.DeepCopyInto(o.(*corev1.Node))
	}
	return err
}

func (r nodeReader) List(ctx context.Context, l client.ObjectList, _ ...client.ListOption) error {
	list, err := r.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil {
		list.DeepCopyInto(l.(*corev1.NodeList))
	}
	return err
}

// round lets everyone look once: the coordinator at each object, then each host.
func (c *cluster) round() {
	ctx := context.Background()
	c.now = c.now.Add(time.Second)
	err := c.lead(ctx)
	if errors.Is(err, errCrash) {
		c.restarts++
		c.start() // memory is gone
	} else {
		require.NoError(c.t, err)
	}
	for _, h := range c.hosts {
		h.look(ctx)
	}
}

func (c *cluster) lead(ctx context.Context) error {
	var errs []error
	look := func(_ ctrl.Result, err error) { errs = append(errs, err) }
	look(c.coordinator.rollout.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: namespace}}))
	for _, h := range c.hosts {
		look(c.coordinator.machines.Reconcile(ctx, request(h.name)))
	}
	look(c.coordinator.marks.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: namespace}}))
	return errors.Join(errs...)
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func (c *cluster) ledger() v1alpha1.LedgerSpec {
	l := &v1alpha1.Ledger{}
	_ = c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: v1alpha1.LedgerName}, l)
	return l.Spec
}

func (c *cluster) node(name string) *corev1.Node {
	n, err := c.kube.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return n
}

// pool wants the machines with its label at a version. The template is written by hand:
// server-side apply without force is tested on a real API server.
func (c *cluster) pool(name string, wish v1alpha1.Versions) {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}}
	d.Spec.Template.Spec.Versions = &wish
	require.NoError(c.t, c.api.Create(context.Background(), d))
	machines := &v1alpha1.MachineList{}
	require.NoError(c.t, c.api.List(context.Background(), machines, client.MatchingLabels{"pool": name}))
	for i := range machines.Items {
		machines.Items[i].Spec.Versions = &wish
		require.NoError(c.t, c.api.Update(context.Background(), &machines.Items[i]))
	}
}

func (c *cluster) lease(name string) {
	ctx := context.Background()
	leases := c.kube.CoordinationV1().Leases("kube-node-lease")
	now := metav1.NewMicroTime(c.now)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-node-lease", ResourceVersion: fmt.Sprint(c.now.Unix())}}
	l.Spec.RenewTime = &now
	if _, err := leases.Update(ctx, l, metav1.UpdateOptions{}); err != nil {
		_, err = leases.Create(ctx, l, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
}
