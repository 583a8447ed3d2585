package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/integration/apiserver"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	namespace = "refit"
	oldK8s    = "v1.36.3"
	newK8s    = "v1.37.2"
	patience  = 60 * time.Second

	coordinatorUser = "system:serviceaccount:refit-system:refit-coordinator"
)

// world is a cluster of simulated hosts on a real API server.
type world struct {
	t   *testing.T
	ctx context.Context
	// server has the Machines, and workloads the Nodes: the same one, but for the test of two.
	server, workloads *apiserver.Server
	admin, workload   client.Client
	hosts             map[string]*host
	dir               string
	began             time.Time
	logs              *os.File
	// metrics is where the coordinator serves them; empty: nowhere.
	metrics string
	// kubeconfig of the operator, once there is one.
	kubeconfig string

	mu          sync.Mutex
	coordinator *exec.Cmd
	pods        []*exec.Cmd
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, server, server)
}

// newWorldOf is a world whose Machines are on one API server, and whose Nodes are on another.
func newWorldOf(t *testing.T, machines, nodes *apiserver.Server) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{t: t, ctx: ctx, server: machines, workloads: nodes,
		admin: newClient(t, machines.Admin()), workload: newClient(t, nodes.Admin()), hosts: map[string]*host{}, dir: t.TempDir(), began: time.Now()}
	logs, err := os.Create(filepath.Join(w.dir, "coordinator.log"))
	require.NoError(t, err)
	w.logs = logs
	t.Cleanup(func() {
		w.kill()
		w.killPods()
		cancel()
		for _, h := range w.hosts {
			h.done.Wait()
			h.Wait()
		}
		if t.Failed() {
			w.dump()
		}
		w.clean()
		_ = logs.Close()
	})
	w.clean()
	return w
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	config.QPS, config.Burst = -1, 0
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// clean removes what a test has left, finalizers and all.
func (w *world) clean() {
	ctx := context.Background()
	machines := &v1alpha1.MachineList{}
	require.NoError(w.t, w.admin.List(ctx, machines, client.InNamespace(namespace)))
	for i := range machines.Items {
		m := &machines.Items[i]
		_ = w.admin.Delete(ctx, m)
		_ = w.admin.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	for _, o := range []client.Object{&v1alpha1.MachineDeployment{}, &v1alpha1.MachineDisruptionBudget{}, &v1alpha1.Ledger{}} {
		require.NoError(w.t, w.admin.DeleteAllOf(ctx, o, client.InNamespace(namespace)))
	}
	require.NoError(w.t, w.admin.DeleteAllOf(ctx, &appsv1.ControllerRevision{}, client.InNamespace(namespace))) // no garbage collector runs here
	require.NoError(w.t, w.workload.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0)))
	require.NoError(w.t, w.workload.DeleteAllOf(ctx, &corev1.Node{}))
	require.NoError(w.t, w.admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace("refit-system")))
}

func (w *world) dump() {
	text, _ := os.ReadFile(w.logs.Name())
	lines := strings.Split(string(text), "\n")
	w.t.Logf("coordinator:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
	for name := range w.hosts {
		m := w.machine(name)
		w.t.Logf("machine %s: assignment %+v plan %+v grant %+v accepted %+v op %+v failure %+v", name,
			m.Status.Assignment, m.Status.Plan, m.Status.Grant, m.Status.Accepted, m.Status.LastOperation, m.Status.RolloutFailure)
		for _, c := range m.Status.Conditions {
			w.t.Logf("  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	l := &v1alpha1.Ledger{}
	_ = w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: v1alpha1.LedgerName}, l)
	w.t.Logf("ledger: %+v", l.Spec)
}

// start starts the coordinator as a program of its own, with the credential it ships with.
func (w *world) start() {
	w.t.Helper()
	w.startWithLease(5 * time.Second)
}

func (w *world) startWithLease(lease time.Duration) {
	w.t.Helper()
	cmd := w.command(lease, "POD_NAMESPACE=default") // where a test can have pods
	w.mu.Lock()
	w.coordinator = cmd
	w.mu.Unlock()
}

// command starts the program with what a pod's environment adds.
func (w *world) command(lease time.Duration, env ...string) *exec.Cmd {
	w.t.Helper()
	args := []string{"--lease-duration=" + lease.String(), "--metrics-bind-address=" + cmp.Or(w.metrics, "0"), "--health-probe-bind-address=0",
		"--kubeconfig=" + w.server.WriteKubeconfig(w.t, w.dir, coordinatorUser, "system:serviceaccounts")}
	if w.workloads != w.server {
		args = append(args, "--workload-kubeconfig="+w.workloads.WriteKubeconfig(w.t, w.t.TempDir(), coordinatorUser, "system:serviceaccounts"))
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = w.logs, w.logs
	cmd.Env = append(os.Environ(), env...)
	require.NoError(w.t, cmd.Start())
	return cmd
}

// kill is SIGKILL: nothing is given back, no lease is released.
func (w *world) kill() { w.signal(syscall.SIGKILL) }

// stop is SIGTERM: what the kubelet sends when the pod is evicted.
func (w *world) stop() { w.signal(syscall.SIGTERM) }

func (w *world) signal(sig syscall.Signal) {
	w.mu.Lock()
	cmd := w.coordinator
	w.coordinator = nil
	w.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait()
	}
}

func (w *world) machine(name string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	err := w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, m)
	if err != nil && !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
	return m
}

func (w *world) node(name string) *corev1.Node {
	n := &corev1.Node{}
	require.NoError(w.t, w.workload.Get(context.Background(), types.NamespacedName{Name: name}, n))
	return n
}

func (w *world) ledger() v1alpha1.LedgerSpec {
	l := &v1alpha1.Ledger{}
	err := w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: v1alpha1.LedgerName}, l)
	if err != nil && !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
	return l.Spec
}

func (w *world) slot(name string) *v1alpha1.Slot {
	for _, s := range w.ledger().Slots {
		if s.Machine == name {
			return &s
		}
	}
	return nil
}

func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	require.Eventually(w.t, is, patience, 20*time.Millisecond, what)
}

func (w *world) condition(name, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(w.machine(name).Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) untilUpToDate(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.until(name+" is up to date and free", func() bool {
			m := w.machine(name)
			c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
			return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation && w.slot(name) == nil
		})
	}
}

// pool creates a MachineDeployment over the machines labelled with its name.
func (w *world) pool(name string, versions v1alpha1.Versions, edit ...func(*v1alpha1.MachineDeployment)) {
	w.t.Helper()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}}
	d.Spec.Template.Spec.Versions = &versions
	for _, e := range edit {
		e(d)
	}
	require.NoError(w.t, w.admin.Create(context.Background(), d))
}

func (w *world) edit(name string, change func(*v1alpha1.MachineDeployment)) {
	w.t.Helper()
	d := &v1alpha1.MachineDeployment{}
	require.NoError(w.t, w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, d))
	before := d.DeepCopy()
	change(d)
	require.NoError(w.t, w.admin.Patch(context.Background(), d, client.MergeFrom(before), client.FieldOwner("kubectl-edit")))
}

func (w *world) annotate(name, key, value string) {
	w.t.Helper()
	m := w.machine(name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	require.NoError(w.t, w.admin.Patch(context.Background(), m, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func workerAt(version string) v1alpha1.Versions {
	return v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(version)}
}

func planeAt(version string) v1alpha1.Versions {
	return v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(version), ControlPlane: v1alpha1.KubernetesVersion(version)}
}

// pod puts a pod of a ReplicaSet, or one that nothing manages, on a node.
func (w *world) pod(name, node string, managed bool) {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none"}}, TerminationGracePeriodSeconds: ptr[int64](1)},
	}
	if managed {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "1", Controller: ptr(true)}}
	}
	require.NoError(w.t, w.workload.Create(context.Background(), p))
}

func (w *world) podExists(name string) bool {
	err := w.workload.Get(context.Background(), types.NamespacedName{Namespace: "default", Name: name}, &corev1.Pod{})
	return err == nil
}

func ptr[T any](v T) *T { return &v }

func hasRole(roles []v1alpha1.Role, r v1alpha1.Role) bool { return slices.Contains(roles, r) }

func (w *world) deploymentCondition(name, kind string) metav1.Condition {
	d := &v1alpha1.MachineDeployment{}
	require.NoError(w.t, w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, d))
	if c := meta.FindStatusCondition(d.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
