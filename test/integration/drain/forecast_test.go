package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-dev/refit/pkg/drain"
)

// foreseen is a case of budgets: how it is made, what the forecast has to say of it, and
// what has to happen for a drain to succeed where it says that it can.
type foreseen struct {
	build   func(*space)
	opts    drain.Options
	outlook drain.Outlook
	reason  string
	clear   func(*space)
}

func ints(n int) *intstr.IntOrString { v := intstr.FromInt(n); return &v }

// guard makes a budget and waits until the disruption controller has seen all of its pods.
func (s *space) guard(name string, spec policyv1.PodDisruptionBudgetSpec, expected, allowed, healthy int32) {
	s.t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	_, err := s.client.PolicyV1().PodDisruptionBudgets(s.name).Create(s.t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		b, err := s.client.PolicyV1().PodDisruptionBudgets(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.DisruptionsAllowed == allowed &&
			b.Status.CurrentHealthy == healthy && b.Status.ExpectedPods == expected
	}, 20*time.Second, 20*time.Millisecond, "the disruption controller's verdict")
}

func (s *space) webs(on string, ready bool, names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.pod(name, on, "web", ready)
	}
}

// crash is the kubelet's word that the pod's container does not come up.
func (s *space) crash(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.patchStatus(name, `{"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,"restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`)
	}
}

func (s *space) patchStatus(name, patch string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Pods(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(s.t, err)
}

// replicaSet is one that exists, for budgets that ask how many replicas there are to be; it returns its ownership.
func (s *space) replicaSet(replicas int32) func(*corev1.Pod) {
	s.t.Helper()
	labels := map[string]string{"app": "web"}
	rs, err := s.client.AppsV1().ReplicaSets(s.name).Create(s.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "rs"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return func(p *corev1.Pod) { p.OwnerReferences[0].UID = rs.UID }
}

// replace plays the controllers and the scheduler: more pods come up elsewhere.
func (s *space) replace(n int) {
	for i := range n {
		s.pod(fmt.Sprintf("new-%d", i), other, "web", true)
	}
}

func minAvailable(n int) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: ints(n)}
}

func alwaysAllow(n int) policyv1.PodDisruptionBudgetSpec {
	always := policyv1.AlwaysAllow
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: ints(n), UnhealthyPodEvictionPolicy: &always}
}

// ofJob is the ownership of a Job that exists.
func (s *space) ofJob() func(*corev1.Pod) {
	s.t.Helper()
	job, err := s.client.BatchV1().Jobs(s.name).Create(s.t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
}

// unsynced makes a budget and waits until the disruption controller has failed to work it out.
func (s *space) unsynced(spec policyv1.PodDisruptionBudgetSpec) {
	s.t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	_, err := s.client.PolicyV1().PodDisruptionBudgets(s.name).Create(s.t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		b, err := s.client.PolicyV1().PodDisruptionBudgets(s.name).Get(s.t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return false
		}
		c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
		return c != nil && c.Reason == policyv1.SyncFailedReason
	}, 20*time.Second, 20*time.Millisecond, "the disruption controller's failure")
}

// end is the kubelet's word that the pod has done its work.
func (s *space) end(name string) {
	s.t.Helper()
	s.patchStatus(name, `{"status":{"phase":"Succeeded"}}`)
}

// force lets pods go that nothing makes anew.
var force = drain.Options{UnmanagedPods: drain.ActionEvict}

var cases = map[string]foreseen{
	"no budget": {build: func(s *space) { s.webs(node, true, "a", "b") }, outlook: drain.OutlookNow},
	"room for all": {outlook: drain.OutlookNow, build: func(s *space) {
		s.webs(node, true, "a", "b")
		s.webs(other, true, "c")
		s.guard("web", minAvailable(1), 3, 2, 3)
	}},
	"room for one of three": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, clear: func(s *space) { s.replace(2) }, build: func(s *space) {
		s.webs(node, true, "a", "b", "c")
		s.webs(other, true, "d")
		s.guard("web", minAvailable(3), 4, 1, 4)
	}},
	"room for one, and no other node": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, opts: drain.Options{OnlyNode: true}, build: func(s *space) {
		s.webs(node, true, "a", "b", "c")
		s.guard("web", minAvailable(2), 3, 1, 3)
	}},
	"minAvailable is the replicas": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		s.webs(node, true, "a")
		s.webs(other, true, "b")
		s.guard("web", minAvailable(2), 2, 0, 2)
	}},
	"maxUnavailable 0": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		of := s.replicaSet(2)
		s.pod("a", node, "web", true, of)
		s.pod("b", other, "web", true, of)
		s.guard("web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ints(0)}, 2, 0, 2)
	}},
	"a single replica": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		s.webs(node, true, "a")
		s.guard("web", minAvailable(1), 1, 0, 1)
	}},
	"two budgets": {outlook: drain.OutlookNever, reason: drain.ReasonPDBOverlap, build: func(s *space) {
		s.webs(node, true, "a")
		s.webs(other, true, "b")
		s.guard("web", minAvailable(1), 2, 1, 2)
		s.guard("all", minAvailable(0), 2, 2, 2)
	}},
	"a pod elsewhere is starting": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, clear: func(s *space) { s.setReady("b", true) }, build: func(s *space) {
		s.webs(node, true, "a")
		s.webs(other, false, "b")
		s.guard("web", minAvailable(1), 2, 0, 1)
	}},
	"pods here are unwell, and none elsewhere": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		s.webs(node, false, "a", "b")
		s.crash("a", "b")
		s.guard("web", minAvailable(1), 2, 0, 0)
	}},
	"a single replica that crashes, and maxUnavailable 1": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		s.pod("a", node, "web", false, s.replicaSet(1))
		s.crash("a")
		s.guard("web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ints(1)}, 1, 0, 0)
	}},
	"all pods crash, and minAvailable 0": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		s.webs(node, false, "a", "b")
		s.crash("a", "b")
		s.guard("web", minAvailable(0), 2, 0, 0)
	}},
	"all pods crash, minAvailable 0, and one elsewhere can be repaired": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, clear: func(s *space) { s.setReady("b", true) }, build: func(s *space) {
		s.webs(node, false, "a")
		s.webs(other, false, "b")
		s.crash("a", "b")
		s.guard("web", minAvailable(0), 2, 0, 0)
	}},
	"pods are unwell, and one elsewhere can be repaired": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, clear: func(s *space) { s.setReady("b", true) }, build: func(s *space) {
		s.webs(node, false, "a")
		s.webs(other, false, "b")
		s.crash("a", "b")
		s.guard("web", minAvailable(1), 2, 0, 0)
	}},
	"an unwell pod that may always go": {outlook: drain.OutlookNow, build: func(s *space) {
		s.webs(node, false, "a")
		s.crash("a")
		s.guard("web", alwaysAllow(1), 1, 0, 0)
	}},
	"an unwell pod beside healthy ones": {outlook: drain.OutlookNow, build: func(s *space) {
		s.webs(node, false, "a")
		s.webs(other, true, "b")
		s.crash("a")
		s.guard("web", minAvailable(1), 2, 0, 1)
	}},
	"pods that have not started, of a budget that is closed": {outlook: drain.OutlookNow, build: func(s *space) {
		s.webs(node, true, "a")
		s.patchStatus("a", `{"status":{"phase":"Pending","conditions":[{"type":"Ready","status":"False"}]}}`)
		s.webs(other, true, "b")
		s.guard("web", minAvailable(2), 2, 0, 1)
	}},
	"a pod that nothing recreates": {outlook: drain.OutlookNever, reason: drain.ReasonUnmanagedPods, build: func(s *space) {
		s.pod("a", node, "web", true, func(p *corev1.Pod) { p.OwnerReferences = nil })
	}},
	"emptyDir under the policy Fail": {outlook: drain.OutlookNever, reason: drain.ReasonEmptyDirPods, opts: drain.Options{EmptyDir: drain.ActionFail}, build: func(s *space) {
		s.pod("a", node, "web", true, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
	}},
	"a bare pod of a budget that is closed": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, opts: force, build: func(s *space) {
		s.pod("a", node, "web", true, bare)
		s.guard("web", minAvailable(1), 1, 0, 1)
	}},
	"bare pods of a budget that closes with the first of them": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, opts: force, build: func(s *space) {
		s.pod("a", node, "web", true, bare)
		s.pod("b", node, "web", true, bare)
		s.guard("web", minAvailable(1), 2, 1, 2)
	}},
	"a crashing bare pod whose eviction would close the budget for another": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, opts: force, build: func(s *space) {
		s.pod("a", node, "web", false, bare)
		s.crash("a")
		s.pod("b", node, "web", true, bare)
		s.guard("web", minAvailable(1), 2, 0, 1)
	}},
	"a bare pod that keeps the budget open for another": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, opts: force, clear: func(s *space) { s.replace(1) }, build: func(s *space) {
		s.pod("a", node, "web", true, bare)
		s.webs(node, true, "b")
		s.webs(other, true, "c")
		s.guard("web", minAvailable(2), 3, 1, 3)
	}},
	"a bare pod of a closed budget that ends by itself": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, opts: force, clear: func(s *space) { s.end("a") }, build: func(s *space) {
		s.pod("a", node, "web", true, bare, func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
		s.guard("web", minAvailable(1), 1, 0, 1)
	}},
	"a Job's pod of a budget that the controller cannot work out": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, clear: func(s *space) { s.end("a") }, build: func(s *space) {
		s.pod("a", node, "web", true, s.ofJob())
		s.unsynced(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ints(0)})
	}},
	"a ReplicaSet's pod beside one of a Job, of such a budget": {outlook: drain.OutlookNever, reason: drain.ReasonEvictionBlocked, build: func(s *space) {
		s.pod("a", node, "web", true, s.replicaSet(1))
		s.pod("b", other, "web", true, s.ofJob())
		s.unsynced(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ints(0)})
	}},
	"an unwell pod that may always go, of such a budget": {outlook: drain.OutlookNow, build: func(s *space) {
		s.pod("a", node, "web", false, s.replicaSet(1))
		s.crash("a")
		s.pod("b", other, "web", true, s.ofJob())
		always := policyv1.AlwaysAllow
		s.unsynced(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ints(0), UnhealthyPodEvictionPolicy: &always})
	}},
	"a single replica under the policy Proceed": {outlook: drain.OutlookWait, reason: drain.ReasonEvictionBlocked, opts: drain.Options{OnTimeout: drain.ActionProceed, Timeout: time.Second}, build: func(s *space) {
		s.webs(node, true, "a")
		s.guard("web", minAvailable(1), 1, 0, 1)
	}},
}

// forecasts asserts that the drain itself then does what was foreseen.
func forecasts(t *testing.T, w *world) {
	i := 0
	for name, tc := range cases {
		i++
		t.Run(name, func(t *testing.T) { w.agree(t, fmt.Sprintf("foreseen-%d", i), tc) })
	}
}

func (w *world) agree(t *testing.T, namespace string, tc foreseen) {
	s := w.within(t, namespace)
	tc.build(s)
	f, err := drain.New(w.drainer, tc.opts).Forecast(t.Context(), node)
	require.NoError(t, err)
	require.Equal(t, tc.outlook, f.Outlook, "%s: %+v", f.Message, f.Pods)
	require.Equal(t, tc.reason, f.Reason)
	foreseen := map[string]drain.PodForecast{}
	for _, p := range f.Pods {
		foreseen[p.Name] = p
	}
	if tc.outlook == drain.OutlookNever {
		w.neverEnds(t, s, tc, foreseen)
		return
	}

	if tc.opts.Timeout == 0 {
		tc.opts.Timeout = 30 * time.Second
	}
	done, events := s.start(tc.opts)
	if tc.clear != nil {
		for e := range events {
			if e.Kind == drain.EventBlocked {
				assert.Equal(t, f.Reason, e.Reason)
				assert.Equal(t, drain.OutlookWait, foreseen[e.Name].Outlook, e.Name)
				break
			}
		}
		tc.clear(s)
	}
	require.NoError(t, <-done)
	if tc.outlook == drain.OutlookNow {
		for len(events) > 0 {
			e := <-events
			assert.NotEqual(t, drain.EventBlocked, e.Kind, "%+v", e)
		}
	}
}

// neverEnds drains with little patience: what is left has to be what was foreseen.
func (w *world) neverEnds(t *testing.T, s *space, tc foreseen, foreseen map[string]drain.PodForecast) {
	tc.opts.Timeout = 1500 * time.Millisecond
	_, err := s.drain(tc.opts)
	b := requireBlocked(t, err)
	assert.Equal(t, tc.reason, b.Reason)
	require.NotEmpty(t, b.Pods)
	count := 0
	for _, p := range b.Pods {
		assert.Equal(t, tc.reason, p.Reason)
		if foreseen[p.Name].Outlook == drain.OutlookNever {
			count++
			assert.Equal(t, foreseen[p.Name].Budgets, p.PDBs)
		}
	}
	never := 0
	for _, p := range foreseen {
		if p.Outlook == drain.OutlookNever {
			never++
		}
	}
	assert.Equal(t, never, count, "every pod of which it was foreseen is still there: %+v", b.Pods)
}
