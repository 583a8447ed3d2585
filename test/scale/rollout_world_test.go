package scale

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/fakehost"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const (
	fleetNamespace  = "refit"
	oldK8s          = "v1.36.3"
	newK8s          = "v1.37.2"
	coordinatorUser = "system:serviceaccount:refit-system:refit-coordinator"
	agentWorkers    = 32
)

// coordinatorWrites is an audit policy that keeps what the coordinator writes, and no bodies.
var coordinatorWrites = []byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: Metadata, users: ["` + coordinatorUser + `"]}
- {level: None}
`)

// fleetWorld is a fleet of hosts that are played in this process, on a real API server,
// and a coordinator that is a process of its own.
type fleetWorld struct {
	t      *testing.T
	server *apiserver.Server
	admin  client.Client
	agents client.Client
	cached client.Reader
	cache  cache.Cache
	queue  workqueue.TypedRateLimitingInterface[string]
	hosts  map[string]*fakehost.Host
	posted sync.Map // what the kubelet of each host said last
	// AfterWork, if any, is what else a kubelet does when its host has been worked on.
	seen        *observer
	ends        time.Time // everything, come what may
	program     string
	kubeconfig  string
	profiles    string // where the coordinator serves them
	coordinator *exec.Cmd
}

// newFleetWorld skips the test unless the long measurements are asked for.
func newFleetWorld(t *testing.T, options ...apiserver.Option) *fleetWorld {
	t.Helper()
	if os.Getenv("REFIT_SCALE") == "" {
		t.Skip("set REFIT_SCALE=1, or run make scale")
	}
	ctrl.SetLogger(logr.Discard())
	w := &fleetWorld{t: t, server: apiserver.Start(t, options...), hosts: map[string]*fakehost.Host{}, seen: newObserver(), ends: time.Now().Add(longest(t)), profiles: "0"}
	if os.Getenv("REFIT_SCALE_PROFILE") != "" {
		w.profiles = freeAddress(t)
	}
	w.admin = fleetClient(t, w.server.Admin())
	w.agents = fleetClient(t, w.server.As(t, "agents", "system:masters"))
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	t.Cleanup(w.queue.ShutDown)
	root, err := checkout.Root()
	require.NoError(t, err)
	for _, f := range []string{"coordinator/namespaces.yaml", "coordinator/rbac/role.yaml", "coordinator/rbac/bindings.yaml", "policy/agent.yaml", "policy/coordinator.yaml"} {
		require.NoError(t, w.server.ApplyFiles(t.Context(), filepath.Join(root, "deploy", f)))
	}
	dir := t.TempDir()
	w.program = filepath.Join(dir, "refit-coordinator")
	build := exec.Command("go", "build", "-o", w.program, "./cmd/refit-coordinator")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	w.kubeconfig = w.server.WriteKubeconfig(t, dir, coordinatorUser, "system:serviceaccounts")
	return w
}

// longest is how long all of a test may take.
func longest(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv("REFIT_SCALE_FOR"), "50m"))
	require.NoError(t, err)
	return d
}

func fleetScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

func fleetClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: fleetScheme(t)})
	require.NoError(t, err)
	return c
}

// add makes a host, with its Node and its Machine.
func (w *fleetWorld) add(ctx context.Context, h *fakehost.Host, pool string, labels map[string]string, role v1alpha1.Role) error {
	h.Changed = func() { w.queue.Add(h.Name) }
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Name, Labels: labels}}
	if err := w.admin.Create(ctx, n); err != nil {
		return fmt.Errorf("making Node %s: %w", h.Name, err)
	}
	if err := w.postNode(ctx, h); err != nil {
		return err
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: h.Name, Labels: map[string]string{"pool": pool}}}
	m.Spec.Roles = []v1alpha1.Role{role}
	return w.admin.Create(ctx, m)
}

// postNode is the kubelet's word of itself, as far as that has changed.
func (w *fleetWorld) postNode(ctx context.Context, h *fakehost.Host) error {
	ready, kubelet, containerRuntime := h.Node()
	state := corev1.ConditionFalse
	if ready {
		state = corev1.ConditionTrue
	}
	word := fmt.Sprint(state, kubelet, containerRuntime)
	if said, _ := w.posted.Load(h.Name); said == word {
		return nil
	}
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"capacity":{"cpu":"8","memory":"32Gi","pods":"110"},"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"},`+
		`"conditions":[{"type":"Ready","status":%q,"reason":"KubeletReady","message":"played","lastTransitionTime":%q,"lastHeartbeatTime":%q}],`+
		`"nodeInfo":{"kubeletVersion":%q,"containerRuntimeVersion":%q,"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}`,
		state, now, now, kubelet, containerRuntime)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
	if err := w.agents.Status().Patch(ctx, n, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("posting the status of Node %s: %w", h.Name, err)
	}
	w.posted.Store(h.Name, word)
	return nil
}

// renewLease is the heartbeat of a kubelet. Only those of hosts in an operation are played:
// nobody here looks at the others.
func (w *fleetWorld) renewLease(ctx context.Context, name string) error {
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &name, &now
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format("2006-01-02T15:04:05.000000Z"))
	err := w.agents.Patch(ctx, lease.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	if apierrors.IsNotFound(err) {
		err = w.agents.Create(ctx, lease)
	}
	return client.IgnoreAlreadyExists(err)
}

// play has all hosts look at their Machines, told by one watch that they share.
func (w *fleetWorld) play() {
	w.t.Helper()
	config := w.server.As(w.t, "agents", "system:masters")
	c, err := cache.New(config, cache.Options{Scheme: fleetScheme(w.t), DefaultNamespaces: map[string]cache.Config{fleetNamespace: {}}})
	require.NoError(w.t, err)
	w.cached, w.cache = c, c
	ctx := w.t.Context()
	machines, err := c.GetInformer(ctx, &v1alpha1.Machine{})
	require.NoError(w.t, err)
	_, err = machines.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { w.queue.Add(o.(*v1alpha1.Machine).Name) },
		UpdateFunc: func(before, now any) {
			w.seen.machine(before.(*v1alpha1.Machine), now.(*v1alpha1.Machine))
			w.queue.Add(now.(*v1alpha1.Machine).Name)
		},
	})
	require.NoError(w.t, err)
	ledgers, err := c.GetInformer(ctx, &v1alpha1.Ledger{})
	require.NoError(w.t, err)
	_, err = ledgers.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.seen.ledger(o.(*v1alpha1.Ledger)) },
		UpdateFunc: func(_, now any) { w.seen.ledger(now.(*v1alpha1.Ledger)) },
	})
	require.NoError(w.t, err)
	go func() { _ = c.Start(ctx) }()
	require.True(w.t, c.WaitForCacheSync(ctx))
	for range agentWorkers {
		go w.work(ctx)
	}
}

func (w *fleetWorld) work(ctx context.Context) {
	for {
		name, ended := w.queue.Get()
		if ended {
			return
		}
		if err := w.look(ctx, name); err != nil && ctx.Err() == nil {
			w.queue.AddRateLimited(name)
		} else {
			w.queue.Forget(name)
		}
		w.queue.Done(name)
	}
}

func (w *fleetWorld) look(ctx context.Context, name string) error {
	h := w.hosts[name]
	m := &v1alpha1.Machine{}
	if err := w.cached.Get(ctx, types.NamespacedName{Namespace: fleetNamespace, Name: name}, m); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := w.postNode(ctx, h); err != nil {
		return err
	}
	if err := h.Look(ctx, m); err != nil {
		return err
	}
	if m.Status.Accepted == nil || m.Status.Grant == nil {
		return nil
	}
	if err := w.renewLease(ctx, name); err != nil {
		return err
	}
	w.queue.AddAfter(name, time.Second)
	return nil
}

// start starts the coordinator with the credential it ships with.
func (w *fleetWorld) start() {
	w.t.Helper()
	logs, err := os.OpenFile(filepath.Join(filepath.Dir(w.program), "coordinator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	cmd := exec.Command(w.program, append([]string{"--kubeconfig=" + w.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--pprof-bind-address=" + w.profiles}, strings.Fields(os.Getenv("REFIT_SCALE_FLAGS"))...)...)
	cmd.Stdout, cmd.Stderr = logs, logs
	require.NoError(w.t, cmd.Start())
	w.coordinator = cmd
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = logs.Close()
		if text, err := os.ReadFile(logs.Name()); err == nil && w.t.Failed() {
			w.t.Logf("the end of the coordinator's log:\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// upToDate counts the machines of a pool that run what they should and hold no slot.
func (w *fleetWorld) upToDate(pool string) int {
	list := &v1alpha1.MachineList{}
	if w.cached.List(w.t.Context(), list, client.MatchingLabels{"pool": pool}, client.UnsafeDisableDeepCopy) != nil {
		return 0
	}
	n := 0
	for i := range list.Items {
		m := &list.Items[i]
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation && m.Status.Grant == nil {
			n++
		}
	}
	return n
}

// await waits as long as something goes on: it fails when nothing has changed for a while, and
// when the time for all is over.
func (w *fleetWorld) await(what string, want int, count func() int) {
	w.t.Helper()
	const patience = 3 * time.Minute
	last, since, told := -1, time.Now(), time.Now()
	for {
		n := count()
		if n >= want {
			return
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			w.t.Logf("%s: %d of %d, the coordinator has used %s of CPU and %.0f MiB; load average %s",
				what, n, want, w.cpu().Round(100*time.Millisecond), w.memory("VmRSS"), load())
		}
		require.True(w.t, time.Now().Before(w.ends), "%s: the time for all is over at %d of %d: set REFIT_SCALE_FOR to more, or REFIT_SCALE_MACHINES to less", what, n, want)
		require.Less(w.t, time.Since(since), patience, "%s: nothing goes on at %d of %d", what, n, want)
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *fleetWorld) pool(name string, change func(*v1alpha1.MachineDeployment)) {
	w.t.Helper()
	d := &v1alpha1.MachineDeployment{}
	err := w.admin.Get(w.t.Context(), types.NamespacedName{Namespace: fleetNamespace, Name: name}, d)
	if apierrors.IsNotFound(err) {
		d = &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: name}}
		d.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}}
		change(d)
		require.NoError(w.t, w.admin.Create(w.t.Context(), d))
		return
	}
	require.NoError(w.t, err)
	before := d.DeepCopy()
	change(d)
	require.NoError(w.t, w.admin.Patch(w.t.Context(), d, client.MergeFrom(before)))
}

func kubeletAt(version string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Versions = &v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(version)}
	}
}
