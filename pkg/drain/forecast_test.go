package drain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

// guarding is a budget over the pods named app, in the state that the disruption controller has seen.
func guarding(app string, allowed, healthy, desired, expected int32) *policyv1.PodDisruptionBudget {
	b := budget(app, app, allowed, 1)
	b.UID = "uid-budget"
	b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = healthy, desired, expected
	return b
}

// unsynced is a budget as the disruption controller leaves one that it cannot work out.
func unsynced(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := guarding("web", 0, 2, 1, 2)
	b.Generation = 1
	b.Status.Conditions = []metav1.Condition{{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: "jobs.batch does not implement the scale subresource",
	}}
	if change != nil {
		change(b)
	}
	return b
}

// byReplicas makes it one whose pods are counted by what their controllers are asked for.
func byReplicas(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	b.Spec.MaxUnavailable = &one
	return b
}

func ofJob(p *corev1.Pod) {
	p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "batch/v1", "Job"
}

func onNode(name string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func labelled(app string) podOption {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func crashing(p *corev1.Pod) {
	unready(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
}

func starting(p *corev1.Pod) {
	unready(p)
	p.CreationTimestamp = metav1.Now()
}

func web(name string, options ...podOption) *corev1.Pod {
	return pod(name, append([]podOption{labelled("web")}, options...)...)
}

func TestAForecastTellsWhatGoesWhatWaitsAndWhatNeverCan(t *testing.T) {
	always := policyv1.AlwaysAllow
	ownedBudget := guarding("web", 0, 1, 1, 1)
	ownedBudget.OwnerReferences = []metav1.OwnerReference{{APIVersion: "db.example/v1", Kind: "Cluster", Name: "db", UID: "1", Controller: new(bool)}}
	*ownedBudget.OwnerReferences[0].Controller = true
	unseen := guarding("web", 0, 1, 1, 1)
	unseen.Generation = 2
	force := drain.Options{UnmanagedPods: drain.ActionEvict}
	once := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	lenient := guarding("web", 0, 0, 1, 1)
	lenient.Spec.UnhealthyPodEvictionPolicy = &always

	for name, tc := range map[string]struct {
		objects          []runtime.Object
		opts             drain.Options
		now, wait, never int
		reason           string
		message          string
	}{
		"an empty node": {message: "no pod has to leave"},
		"pods without a budget": {
			objects: []runtime.Object{pod("a"), pod("b", unready)}, now: 2, message: "pods that leave: 2 at once"},
		"a bare pod": {
			objects: []runtime.Object{pod("a", bare), pod("b")}, now: 1, never: 1, reason: drain.ReasonUnmanagedPods, message: "shop/a has no controller"},
		"a bare pod that may go": {
			objects: []runtime.Object{pod("a", bare)}, opts: drain.Options{UnmanagedPods: drain.ActionEvict}, now: 1},
		"emptyDir that may not go": {
			objects: []runtime.Object{pod("a", emptyDir)}, opts: drain.Options{EmptyDir: drain.ActionFail}, never: 1, reason: drain.ReasonEmptyDirPods},
		"a pod that leaves already": {
			objects: []runtime.Object{pod("a", leavingSince(time.Second))}, wait: 1, reason: drain.ReasonPodsTerminating},
		"a budget that allows one of three": {
			objects: []runtime.Object{web("a"), web("b"), web("c"), guarding("web", 1, 4, 3, 4)}, now: 1, wait: 2, reason: drain.ReasonEvictionBlocked,
			message: "pods that leave: 1 at once, 2 later; budget web allows 1 disruptions at a time (shop: a, b, c)"},
		"the same where no other node takes a replacement": {
			objects: []runtime.Object{web("a"), web("b"), guarding("web", 1, 4, 3, 4)}, opts: drain.Options{OnlyNode: true},
			now: 1, never: 1, reason: drain.ReasonEvictionBlocked, message: "no other node takes the replacement"},
		"a single replica": {
			objects: []runtime.Object{web("a"), guarding("web", 0, 1, 1, 1)}, never: 1, reason: drain.ReasonEvictionBlocked, message: "it can never allow one"},
		"a single replica past the timeout": {
			objects: []runtime.Object{web("a"), guarding("web", 0, 1, 1, 1)}, opts: drain.Options{OnTimeout: drain.ActionDelete}, wait: 1,
			reason: drain.ReasonEvictionBlocked, message: "at the timeout of 30m0s it is deleted past its budget, as the policy is Delete"},
		"a budget of an operator": {
			objects: []runtime.Object{web("a"), ownedBudget}, wait: 1, reason: drain.ReasonEvictionBlocked, message: "but the budget is that of Cluster db, which may open it once the node is cordoned"},
		"a budget whose change is not seen yet": {
			objects: []runtime.Object{web("a"), unseen}, wait: 1, reason: drain.ReasonEvictionBlocked, message: "has not seen its latest change"},
		"a budget that the controller cannot work out": {
			objects: []runtime.Object{web("a"), unsynced(nil)}, never: 1, reason: drain.ReasonEvictionBlocked, message: "jobs.batch does not implement the scale subresource"},
		"one that it could work out before": {
			objects: []runtime.Object{web("a"), unsynced(func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 1 })}, never: 1,
			reason: drain.ReasonEvictionBlocked, message: "jobs.batch does not implement the scale subresource"},
		"one that it can work out again": {
			objects: []runtime.Object{web("a"), unsynced(func(b *policyv1.PodDisruptionBudget) {
				b.Status.ObservedGeneration, b.Status.DisruptionsAllowed = 1, 1
				b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
			})}, now: 1},
		"one that it cannot work out, of a pod that ends by itself": {
			objects: []runtime.Object{web("a", ofJob), unsynced(nil)}, wait: 1,
			reason: drain.ReasonEvictionBlocked, message: "jobs.batch does not implement the scale subresource"},
		"two budgets": {
			objects: []runtime.Object{web("a"), guarding("web", 1, 2, 1, 2), budget("all", "web", 1, 1)}, never: 1, reason: drain.ReasonPDBOverlap, message: "budgets all and web both match it"},
		"two budgets on a pod that has not started": {
			objects: []runtime.Object{web("a", inPhase(corev1.PodPending)), guarding("web", 1, 2, 1, 2), budget("all", "web", 1, 1)}, now: 1},
		"a pod of the budget starts elsewhere": {
			objects: []runtime.Object{web("a"), web("b", onNode("w2"), starting), guarding("web", 0, 1, 1, 2)}, wait: 1,
			reason: drain.ReasonEvictionBlocked, message: "it clears when other pods become ready"},
		"the last healthy pods of a budget are unwell here": {
			objects: []runtime.Object{web("a", crashing), web("b", crashing), guarding("web", 0, 0, 1, 2)}, never: 2,
			reason: drain.ReasonEvictionBlocked, message: "pods of it, this one among them, are not ready; repair the application, or set unhealthyPodEvictionPolicy: AlwaysAllow on the budget"},
		"a crashing pod that its budget can never let go": {
			objects: []runtime.Object{web("a", crashing), guarding("web", 0, 0, 1, 1)}, never: 1, reason: drain.ReasonEvictionBlocked,
			message: "it can never allow one; add replicas, or let it allow one; this pod is not ready: with unhealthyPodEvictionPolicy: AlwaysAllow the budget lets such a pod go"},
		"an unwell pod that may always go, by a budget whose change is not seen yet": {
			objects: []runtime.Object{web("a", crashing), unsynced(func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always })}, now: 1},
		"a bare pod that a budget can never let go": {
			objects: []runtime.Object{web("a", bare), guarding("web", 0, 1, 1, 1)}, opts: force, never: 1, reason: drain.ReasonEvictionBlocked,
			message: "it can never allow one; nothing makes another pod in place of this one"},
		"a bare pod that ends by itself": {
			objects: []runtime.Object{web("a", bare, once), guarding("web", 0, 1, 1, 1)}, opts: force, wait: 1, reason: drain.ReasonEvictionBlocked,
			message: "but the pod has work that ends by itself"},
		"bare pods of a budget that closes with the first of them": {
			objects: []runtime.Object{web("a", bare), web("b", bare), guarding("web", 1, 2, 1, 2)}, opts: force, never: 2, reason: drain.ReasonEvictionBlocked,
			message: "it can never let all of them go, and so none of them is evicted; delete them, or let the budget allow more"},
		"a crashing bare pod whose eviction would close the budget for another": {
			objects: []runtime.Object{web("a", bare, crashing), web("b", bare), guarding("web", 0, 1, 1, 2)}, opts: force, never: 2, reason: drain.ReasonEvictionBlocked,
			message: "it can never let all of them go"},
		"the same, named the other way round": {
			objects: []runtime.Object{web("b", bare, crashing), web("a", bare), guarding("web", 0, 1, 1, 2)}, opts: force, never: 2, reason: drain.ReasonEvictionBlocked},
		"the same, past the timeout": {
			objects: []runtime.Object{web("b", bare, crashing), web("a", bare), guarding("web", 0, 1, 1, 2)}, now: 1, wait: 1, reason: drain.ReasonEvictionBlocked,
			opts:    drain.Options{UnmanagedPods: drain.ActionEvict, OnTimeout: drain.ActionDelete},
			message: "and it will allow none, since nothing makes another pod in place of those that go; at the timeout of 30m0s it is deleted"},
		"a crashing bare pod of a budget that pods elsewhere keep open": {
			objects: []runtime.Object{web("a", bare, crashing), web("b", onNode("w2")), guarding("web", 0, 1, 1, 2)}, opts: force, now: 1},
		"a bare pod beside one that comes again elsewhere": {
			objects: []runtime.Object{web("a", bare), web("b"), web("c", onNode("w2")), guarding("web", 1, 3, 2, 3)}, opts: force, now: 1, wait: 1,
			reason: drain.ReasonEvictionBlocked, message: "without it budget web would let no other of this node go: it is evicted after them"},
		"bare pods of a budget that counts what controllers are asked for": {
			objects: []runtime.Object{web("a", bare), web("b"), web("c", onNode("w2")), byReplicas(guarding("web", 1, 3, 2, 3))}, opts: force, now: 1, wait: 1,
			reason: drain.ReasonEvictionBlocked, message: "budget web allows 1 disruptions at a time"},
		"bare pods of a budget that pods elsewhere keep open": {
			objects: []runtime.Object{web("a", bare), web("b", bare), web("c", onNode("w2"), crashing), guarding("web", 1, 2, 1, 3)}, opts: force,
			now: 1, wait: 1, reason: drain.ReasonEvictionBlocked, message: "budget web allows 1 disruptions at a time"},
		"a Job's pod that its budget can never let go": {
			objects: []runtime.Object{web("a", ofJob), guarding("web", 0, 1, 1, 1)}, wait: 1, reason: drain.ReasonEvictionBlocked,
			message: "but the pod has work that ends by itself"},
		"an unwell pod whose budget another one can satisfy": {
			objects: []runtime.Object{web("a", crashing), web("b", onNode("w2"), crashing), guarding("web", 0, 0, 1, 2)}, wait: 1, reason: drain.ReasonEvictionBlocked},
		"crashing pods of a budget that needs none of them": {
			objects: []runtime.Object{web("a", crashing), guarding("web", 0, 0, 0, 1)}, never: 1, reason: drain.ReasonEvictionBlocked,
			message: "repair the application, or set unhealthyPodEvictionPolicy: AlwaysAllow on the budget"},
		"a pod that starts, of a budget that needs none": {
			objects: []runtime.Object{web("a", starting), guarding("web", 0, 0, 0, 1)}, wait: 1, reason: drain.ReasonEvictionBlocked},
		"a crashing pod of a budget that needs none, and one elsewhere that can be repaired": {
			objects: []runtime.Object{web("a", crashing), web("b", onNode("w2"), crashing), guarding("web", 0, 0, 0, 2)}, wait: 1, reason: drain.ReasonEvictionBlocked},
		"a crashing pod of a budget that needs none, whose count of healthy ones is not spent yet": {
			objects: []runtime.Object{web("a", crashing), web("b", onNode("w2")), guarding("web", 0, 1, 0, 2)}, wait: 1, reason: drain.ReasonEvictionBlocked},
		"a pod that only just starts": {
			objects: []runtime.Object{web("a", starting), web("b", starting), guarding("web", 0, 0, 1, 2)}, wait: 2, reason: drain.ReasonEvictionBlocked},
		"an unwell pod that may always go": {
			objects: []runtime.Object{web("a", crashing), lenient}, now: 1},
		"an order of leaving": {
			objects: []runtime.Object{pod("a"), pod("last", withOrder("100"))}, now: 1, wait: 1, reason: drain.ReasonWaitsForOthers},
		"a node that is out of sight": {
			objects: []runtime.Object{nodeThatIs(corev1.ConditionUnknown), pod("a")}, now: 1, reason: drain.ReasonNodeUnreachable, message: "has been unreachable since"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.objects...)
			c.onlyPodsOfTheirNode()
			f, err := drain.New(c, tc.opts).Forecast(t.Context(), node)
			require.NoError(t, err)
			assert.Equal(t, []int{tc.now, tc.wait, tc.never}, []int{f.Count(drain.OutlookNow), f.Count(drain.OutlookWait), f.Count(drain.OutlookNever)}, "%+v", f.Pods)
			assert.Equal(t, tc.reason, f.Reason)
			assert.Contains(t, f.Message, tc.message)
			assert.Zero(t, c.allTries())
			switch {
			case tc.never > 0:
				assert.Equal(t, drain.OutlookNever, f.Outlook)
			case tc.wait > 0 || tc.reason != "":
				assert.Equal(t, drain.OutlookWait, f.Outlook)
			default:
				assert.Equal(t, drain.OutlookNow, f.Outlook)
			}
		})
	}
}

func withGrace(seconds int64) podOption {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func TestAForecastHasThePodsAsTheyWouldGoAndTheLeastTimeThatTheyNeed(t *testing.T) {
	c := newCluster(t,
		pod("free", withGrace(30)), pod("first", withGrace(10), withPriority(-1)), pod("storage", withGrace(5), withOrder("100")),
		pod("leaving", leavingSince(0), withPriority(7)))
	f, err := drain.New(c, drain.Options{}).Forecast(t.Context(), node)
	require.NoError(t, err)
	assert.Equal(t, 35*time.Second, f.Least.Duration)
	var names []string
	for _, p := range f.Pods {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"first", "free", "leaving", "storage"}, names)
	assert.True(t, f.Pods[2].Awaited)
	assert.Equal(t, 100, f.Pods[3].Order)
}

func TestAForecastNamesWhatABudgetWaitsForAndWhatStays(t *testing.T) {
	c := newCluster(t, web("a"), web("b", onNode("w2"), starting), web("c", onNode("w3"), crashing), guarding("web", 0, 1, 2, 4),
		pod("cni", ofDaemonSet("cni")), daemonSet("cni"), pod("apiserver", mirror), pod("job", inPhase(corev1.PodSucceeded)))
	c.onlyPodsOfTheirNode()
	f, err := drain.New(c, drain.Options{LoadBalancerDelay: time.Minute}).Forecast(t.Context(), node)
	require.NoError(t, err)
	require.Len(t, f.Budgets, 1)
	b := f.Budgets[0]
	assert.Equal(t, []drain.UnreadyPod{{Name: "b", Node: "w2", Why: "still starting", Starting: true}, {Name: "c", Node: "w3", Why: "CrashLoopBackOff"}}, b.Unready)
	assert.Equal(t, "kubectl describe poddisruptionbudget -n shop web", b.Help)
	assert.Equal(t, []string{"a"}, b.Pods)
	assert.Equal(t, []drain.IgnoredPod{{Namespace: "shop", Name: "apiserver", Why: "Mirror"}, {Namespace: "shop", Name: "cni", Why: "DaemonSet"}, {Namespace: "shop", Name: "job", Why: "Finished"}}, f.Ignored)
	assert.Equal(t, &metav1.Duration{Duration: time.Minute}, f.LoadBalancerDelay)
}

func TestAForecastNamesTheVolumesThatARebootWaitsFor(t *testing.T) {
	c := newCluster(t, pod("db", withClaim("data")), claim("data", "pv-db"), attachment("va-db", "pv-db", node, true), attachment("va-far", "pv-far", "w2", true),
		pod("log", ofDaemonSet("log"), withClaim("logs")), daemonSet("log"), claim("logs", "pv-logs"), attachment("va-logs", "pv-logs", node, true))
	f, err := drain.New(c, drain.Options{AwaitVolumes: true}).Forecast(t.Context(), node)
	require.NoError(t, err)
	require.Len(t, f.Volumes, 1)
	assert.Equal(t, "va-db", f.Volumes[0].Attachment)
}

func TestForecastsOfManyNodesReadTheBudgetsOnce(t *testing.T) {
	c := newCluster(t, pod("a"), budget("web", "a", 1, 1))
	requests := make([]drain.ForecastRequest, 20)
	for i := range requests {
		requests[i].Node = node
	}
	all, err := drain.NewCluster(c).Forecasts(t.Context(), requests)
	require.NoError(t, err)
	require.Len(t, all, 20)
	for _, f := range all {
		assert.Len(t, f.Pods, 1)
	}
	begun := 0
	for _, a := range c.Actions() {
		if a.Matches("watch", "poddisruptionbudgets") {
			begun++
		}
	}
	assert.Equal(t, 1, begun)

	requests[7].Node = "gone"
	_, err = drain.NewCluster(c).Forecasts(t.Context(), requests)
	require.ErrorContains(t, err, "reading node gone")
}

func TestAForecastThatIsFollowedTellsEachChangeOnce(t *testing.T) {
	b := guarding("web", 0, 1, 1, 1)
	c := newCluster(t, web("a"), b)
	told := make(chan drain.Forecast, 10)
	go drain.New(c, drain.Options{}).Quick().Follow(t.Context(), node, func(f drain.Forecast, err error) {
		if assert.NoError(t, err) {
			told <- f
		}
	})
	assert.Equal(t, drain.OutlookNever, (<-told).Outlook)
	b = b.DeepCopy()
	b.ResourceVersion, b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = "2", 2, 2, 1
	c.updateBudget(t, b)
	assert.Equal(t, drain.OutlookNow, (<-told).Outlook)
	assert.Empty(t, told)
}

func TestAForecastWithoutTheRightToReadSaysSo(t *testing.T) {
	c := newCluster(t, pod("a"))
	deny("list", "poddisruptionbudgets")(c)
	deny("watch", "poddisruptionbudgets")(c)
	_, err := drain.New(c, drain.Options{}).Forecast(t.Context(), node)
	assert.Equal(t, drain.ReasonMissingPermission, requireBlocked(t, err).Reason)
}

// readsSelectors refuses what the API server cannot parse, which the fake takes for everything.
func (c *cluster) readsSelectors() {
	c.PrependReactor("list", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if list, ok := a.(k8stesting.ListActionImpl); ok {
			if _, err := labels.Parse(list.GetListOptions().LabelSelector); err != nil {
				return true, nil, apierrors.NewBadRequest(err.Error())
			}
		}
		return false, nil, nil
	})
}

func TestABudgetOfAllPodsOfItsNamespaceIsForeseen(t *testing.T) {
	all := guarding("web", 0, 1, 2, 3)
	all.Spec.Selector = &metav1.LabelSelector{}
	c := newCluster(t, web("a"), pod("b", onNode("w2"), crashing), all)
	c.onlyPodsOfTheirNode()
	c.readsSelectors()
	f, err := drain.New(c, drain.Options{}).Forecast(t.Context(), node)
	require.NoError(t, err)
	require.Len(t, f.Budgets, 1)
	assert.Equal(t, []drain.UnreadyPod{{Name: "b", Node: "w2", Why: "CrashLoopBackOff"}}, f.Budgets[0].Unready)
}

func TestABudgetWhosePodsCannotBeReadIsToldOfAndEndsNoForecast(t *testing.T) {
	c := newCluster(t, web("a", crashing), pod("b"), guarding("web", 0, 0, 1, 1))
	c.onlyPodsOfTheirNode()
	c.PrependReactor("list", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if list, ok := a.(k8stesting.ListActionImpl); ok && list.GetListOptions().LabelSelector != "" {
			return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
		}
		return false, nil, nil
	})
	all, err := drain.NewCluster(c).Forecasts(t.Context(), []drain.ForecastRequest{{Node: node}, {Node: node}})
	require.NoError(t, err)
	for _, f := range all {
		assert.Equal(t, 1, f.Count(drain.OutlookNow), "%+v", f.Pods)
		assert.Contains(t, f.Message, "listing the pods of budget shop/web")
		assert.Contains(t, f.Message, "etcd is away")
	}
}
