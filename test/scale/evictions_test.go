package scale

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fakehost"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const (
	servingNodes = 8
	fullNodes    = 4 // carry most of the pods, as where the other nodes came later
	fullPods     = 24
	lightPods    = 4 // on the others
)

// withoutMarks has the API server refuse the mark on outdated nodes, and nothing else.
const withoutMarks = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: without-marks}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}
  validations:
  - expression: "!has(object.spec.taints) || !object.spec.taints.exists(t, t.key == '` + v1alpha1.TaintOutdated + `')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: without-marks}
spec: {policyName: without-marks, validationActions: [Deny]}
`

// evictionRun is what one rollout did to its pods.
type evictionRun struct {
	evictions      map[string]int // by pod
	fewest, should int            // serving nodes
	took           time.Duration
}

func (r evictionRun) total() int {
	n := 0
	for _, k := range r.evictions {
		n += k
	}
	return n
}

func (r evictionRun) most() int {
	n := 0
	for _, k := range r.evictions {
		n = max(n, k)
	}
	return n
}

// TestAPodIsEvictedOnceWhereThereIsAPlaceForIt rolls a pool under the real scheduler and the
// real controllers, with and without the mark on outdated nodes and a standby.
func TestAPodIsEvictedOnceWhereThereIsAPlaceForIt(t *testing.T) {
	names := []string{"without the mark", "with the mark", "with the mark and one standby"}
	done := map[string]evictionRun{}
	for i, name := range names {
		t.Run(name, func(t *testing.T) { done[name] = rollUnderTheScheduler(t, i > 0, i > 1) })
	}
	if len(done) < len(names) {
		t.SkipNow()
	}
	const pods = fullPods + lightPods
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Printf("a rollout over %d serving nodes with %d pods, one node at a time, under kube-scheduler\n", servingNodes, pods)
	fmt.Printf("%d of the pods on %d of the nodes at first\n", fullPods, fullNodes)
	fmt.Fprintln(out, "\tEVICTIONS/POD\tMOST OF ONE POD\tPODS MOVED TWICE OR MORE\tFEWEST SERVING\tSECONDS")
	for _, name := range names {
		r := done[name]
		again := 0
		for _, n := range r.evictions {
			if n > 1 {
				again++
			}
		}
		fmt.Fprintf(out, "%s\t%.2f\t%d\t%d\t%d of %d\t%.0f\n", name, float64(r.total())/pods, r.most(), again, r.fewest, servingNodes, r.took.Seconds())
	}
	require.NoError(t, out.Flush())
	assert.Equal(t, 1, done[names[2]].most(), "a finished node has place for every pod, from the first one on")
	for _, r := range done {
		assert.GreaterOrEqual(t, r.fewest, r.should, "serving nodes")
	}
}

func rollUnderTheScheduler(t *testing.T, marks, standby bool) evictionRun {
	w := newFleetWorld(t, apiserver.WithAudit(coordinatorWrites))
	w.server.StartControllers(t, "statefulset-controller", "disruption-controller", "serviceaccount-controller")
	w.server.StartScheduler(t)
	client, err := kubernetes.NewForConfig(w.server.Admin())
	require.NoError(t, err)
	if !marks {
		require.NoError(t, w.server.Apply(t.Context(), []byte(withoutMarks)))
		time.Sleep(2 * time.Second) // the API server compiles it
	}
	nodes := servingNodes
	if standby {
		nodes++
	}
	w.addWorkers(nodes)
	for name := range w.hosts { // there is no node controller that would take off what a new node has
		setTaint(t, client, name, name == "cp1" || name >= fmt.Sprintf("worker-%d", fullNodes))
	}
	go runPods(t.Context(), client)
	makePods(t, client, "full", fullPods)
	for name := range w.hosts {
		setTaint(t, client, name, name == "cp1")
	}
	w.pool("workers", func(d *v1alpha1.MachineDeployment) {
		kubeletAt(oldK8s)(d)
		one, none, serving := intstr.FromInt32(1), intstr.FromInt32(0), int32(servingNodes)
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: &one}}
		if standby {
			d.Spec.Replicas = &serving
			d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: &none, MaxSurge: &one}
		}
	})
	w.play()
	w.start()
	w.await("machines are taken on", nodes, func() int { return w.upToDate("workers") })
	w.await("nodes serve", nodes-servingNodes, func() int { return nodes - servingNow(t.Context(), client) })
	makePods(t, client, "light", lightPods)

	var fewest atomic.Int64
	fewest.Store(int64(nodes))
	go func() {
		for t.Context().Err() == nil {
			if n := servingNow(t.Context(), client); n >= 0 {
				fewest.Store(min(fewest.Load(), int64(n)))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	began := time.Now()
	w.pool("workers", kubeletAt(newK8s))
	w.await("machines have the new version", nodes, func() int { return w.atVersion("workers", newK8s) })
	r := evictionRun{evictions: map[string]int{}, should: servingNodes - 1, took: time.Since(began)}
	if standby {
		r.should = servingNodes
	}
	r.fewest = int(fewest.Load())
	for _, e := range audit.Read(t, w.server.AuditLog()).By(coordinatorUser).Between(began, time.Now()) {
		if e.ObjectRef.Subresource == "eviction" && e.Succeeded() {
			r.evictions[e.ObjectRef.Name]++
		}
	}
	assert.Len(t, slices.Collect(maps.Keys(r.evictions)), fullPods+lightPods, "every node was drained, so every pod has moved")
	return r
}

func (w *fleetWorld) addWorkers(n int) {
	w.t.Helper()
	cp := fakehost.New(fleetNamespace, "cp1", newK8s, w.agents)
	cp.APIServer = newK8s
	w.hosts["cp1"] = cp
	require.NoError(w.t, w.add(w.t.Context(), cp, "control-plane", nil, v1alpha1.RoleControlPlane))
	for i := range n {
		h := fakehost.New(fleetNamespace, fmt.Sprintf("worker-%d", i), oldK8s, w.agents)
		w.hosts[h.Name] = h
		require.NoError(w.t, w.add(w.t.Context(), h, "workers", map[string]string{corev1.LabelHostname: h.Name}, v1alpha1.RoleWorker))
	}
}

// atVersion counts the machines of a pool that run a version, and are through with it.
func (w *fleetWorld) atVersion(pool, version string) int {
	n := 0
	for _, h := range w.hosts {
		if _, kubelet, _ := h.Node(); strings.HasPrefix(h.Name, "worker-") && kubelet == version {
			n++
		}
	}
	return min(n, w.upToDate(pool))
}

// servingNow is how many nodes are ready and take pods; -1 where that cannot be told.
func servingNow(ctx context.Context, client kubernetes.Interface) int {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return -1
	}
	n := 0
	for _, node := range list.Items {
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if strings.HasPrefix(node.Name, "worker-") && ready && !node.Spec.Unschedulable {
			n++
		}
	}
	return n
}

// setTaint keeps pods off a node, or lets them on it.
func setTaint(t *testing.T, client kubernetes.Interface, node string, off bool) {
	t.Helper()
	patch := `{"spec":{"taints":null}}`
	if off {
		patch = `{"spec":{"taints":[{"key":"refit-test/not-here","effect":"NoSchedule"}]}}`
	}
	_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// makePods makes the pods of a StatefulSet, so that one that comes again has its name again,
// and waits until they run.
func makePods(t *testing.T, client kubernetes.Interface, app string, replicas int32) {
	t.Helper()
	labels, second := map[string]string{"app": app}, int64(1)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: app}}
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
	}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec = corev1.PodSpec{TerminationGracePeriodSeconds: &second, Containers: []corev1.Container{{
		Name: "c", Image: "i",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
	}}}
	_, err := client.AppsV1().StatefulSets("default").Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		set, err := client.AppsV1().StatefulSets("default").Get(t.Context(), app, metav1.GetOptions{})
		return err == nil && set.Status.ReadyReplicas == replicas
	}, 4*time.Minute, 100*time.Millisecond, "all pods of %s run", app)
}

// runPods is what all kubelets do: they run the pods of their nodes, and let go of those that end.
func runPods(ctx context.Context, client kubernetes.Interface) {
	for ctx.Err() == nil {
		pods, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for e := range pods.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Deleted && p.Spec.NodeName != "" {
				runPod(ctx, client, p)
			}
		}
	}
}

func runPod(ctx context.Context, client kubernetes.Interface, p *corev1.Pod) {
	var err error
	switch now := int64(0); {
	case p.DeletionTimestamp != nil:
		err = client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	case p.Status.Phase == corev1.PodPending:
		running := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		_, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, running, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "playing the kubelet of pod %s: %v\n", p.Name, err)
	}
}
