package drain

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/test/audit"
)

// fallbackPace is the shortest time after which a blocked eviction is tried again without an event.
const fallbackPace = 4 * time.Second

func TestDrain(t *testing.T) {
	w := newWorld(t)
	for name, run := range map[string]func(*testing.T, *world){
		"pods without a budget leave at once":                                           pods,
		"a single replica blocks, and its budget is named":                              singleReplica,
		"the policy for the deadline names or deletes what is left":                     deadline,
		"a failed or aborted drain gives the node back at once":                         givesBack,
		"a node that a person has cordoned is drained and stays cordoned":               preCordoned,
		"a pod that may not go and comes in the middle is waited for":                   latecomers,
		"each kind of pod is treated by the decision table":                             kinds,
		"a DaemonSet that may not be read is a missing permission":                      unreadDaemonSets,
		"a pod of a deleted DaemonSet counts as unmanaged":                              orphanedDaemon,
		"attached volumes hold up a reboot, within bounds":                              volumes,
		"an unreachable node is named and left behind only by policy":                   unreachable,
		"storage and ingress leave last":                                                ordered,
		"a refusal by admission is no missing role":                                     refusedByAdmission,
		"overlapping budgets are refused before any eviction":                           overlap,
		"unready pods block, leave by policy, or leave when the application is healthy": unhealthy,
		"a lingering pod is awaited and named":                                          lingering,
		"a missing permission ends the drain at once":                                   missingPermission,
		"a namespace that is being deleted is awaited":                                  terminatingNamespace,
		"a cordon and its marker are one write":                                         cordon,
		"the shipped roles are enough":                                                  shippedRoles,
		"a budget that refuses twice is waited for, and taken as it frees":              refusedByBudget,
		"a budget that frees is taken within a second":                                  freedBudget,
		"an eviction never hits a pod that has taken a name":                            otherUID,
		"what a forecast says is what the drain then does":                              forecasts,
		"budgets hold at every moment of a drain":                                       neverBelowBudget,
	} {
		t.Run(name, func(t *testing.T) { run(t, w) })
	}
	t.Run("the audit log shows nothing that a drain may not do", func(t *testing.T) { observed(t, w) })
}

// observed judges every drain above by the API server's own log, and then the judge itself.
func observed(t *testing.T, w *world) {
	rules := audit.Rules{Drainers: []string{drainer, coordinator, "reader", "nobody"}, MayDelete: []string{"shipped", "deadline"}}
	log := audit.Read(t, w.server.AuditLog())
	v := log.Judge(rules)
	t.Logf("%d evictions accepted, %d of them out of a budget, %d refused, %d of them by a budget, %d pods deleted by policy", v.Evictions, v.Charged, v.Refused, v.RefusedByBudget, v.Deleted)
	assert.Empty(t, v.Violations)
	assert.GreaterOrEqual(t, v.Evictions, 20)
	assert.GreaterOrEqual(t, v.Charged, 9)
	assert.GreaterOrEqual(t, v.RefusedByBudget, 2)
	assert.GreaterOrEqual(t, v.Deleted, 1)

	assert.Len(t, log.Uncharged().Judge(rules).Violations, v.Charged, "an eviction that no budget was asked for is found")

	s := w.within(t, "violated")
	s.pod("a", node, "a", true)
	require.NoError(t, w.drainer.CoreV1().Pods(s.name).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	found := audit.Read(t, w.server.AuditLog()).Judge(rules).Violations
	assert.Equal(t, []string{"refit-drainer deleted pod violated/a without the policy"}, found)
}

func pods(t *testing.T, w *world) {
	s := w.within(t, "plain")
	s.pod("a", node, "a", true)
	s.pod("b", node, "b", false)
	s.pod("elsewhere", other, "a", true)
	result, err := s.drain(drain.Options{Timeout: 20 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, 2, result.Evicted)
	assert.Equal(t, 2, result.Requests)
	left, err := s.client.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
	assert.Equal(t, "elsewhere", left.Items[0].Name)
}

func singleReplica(t *testing.T, w *world) {
	s := w.within(t, "single")
	s.pod("web-1", node, "web", true)
	s.budget("web", "web", 1, nil, 0, 1)
	began := time.Now()
	_, err := s.drain(drain.Options{Timeout: 2 * time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonEvictionBlocked, b.Reason)
	require.Len(t, b.Pods, 1)
	assert.Equal(t, []string{"web"}, b.Pods[0].PDBs)
	assert.WithinRange(t, b.Pods[0].Since, began, time.Now())
	assert.Contains(t, b.Message, "single/web-1")
	assert.Contains(t, b.Message, "budget web allows 0 disruptions (1 healthy, 1 needed, 1 expected): it can never allow one; add replicas, or let it allow one")
}

func overlap(t *testing.T, w *world) {
	s := w.within(t, "overlap")
	s.pod("web-1", node, "web", true)
	s.pod("free", node, "free", true)
	s.budget("web", "web", 0, nil, 1, 1)
	s.budget("all", "web", 0, nil, 1, 1)
	result, err := s.drain(drain.Options{Timeout: 10 * time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonPDBOverlap, b.Reason)
	assert.Contains(t, b.Message, "budgets all and web both match it")
	assert.Zero(t, result.Requests)

	result, err = s.drain(drain.Options{Timeout: 3 * time.Second, OnTimeout: drain.ActionProceed})
	require.NoError(t, err, "asked to, it tries all the same")
	require.Len(t, result.Remaining, 1)
	assert.Equal(t, drain.ReasonPDBOverlap, result.Remaining[0].Reason, "the API server's 500 is told from a passing one")
	assert.Equal(t, 1, result.Evicted)
}

func unhealthy(t *testing.T, w *world) {
	always := policyv1.AlwaysAllow
	crashing := func(s *space, pods int) {
		for _, name := range []string{"web-1", "web-2"}[:pods] {
			s.pod(name, node, "web", false)
		}
	}
	s := w.within(t, "crash-blocked")
	crashing(s, 2)
	s.budget("web", "web", 1, nil, 0, 0)
	_, err := s.drain(drain.Options{Timeout: time.Second})
	b := requireBlocked(t, err)
	assert.Contains(t, b.Message, "this one among them, are not ready; repair the application, or set unhealthyPodEvictionPolicy: AlwaysAllow on the budget")
	assert.Len(t, b.Pods, 2)
	require.NoError(t, s.client.CoreV1().Pods(s.name).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}))

	s = w.within(t, "crash-allowed")
	crashing(s, 2)
	s.budget("web", "web", 1, &always, 0, 0)
	result, err := s.drain(drain.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, 2, result.Evicted)

	s = w.within(t, "crash-one")
	crashing(s, 1)
	s.pod("healthy", other, "web", true)
	s.budget("web", "web", 1, nil, 0, 1)
	result, err = s.drain(drain.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, 1, result.Evicted)
}

func lingering(t *testing.T, w *world) {
	s := w.within(t, "lingering")
	s.pod("slow", node, "slow", true)
	setFinalizers := func(list string) {
		_, err := s.client.CoreV1().Pods(s.name).Patch(t.Context(), "slow", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	setFinalizers(`["refit.test/holds"]`)
	_, err := s.drain(drain.Options{Timeout: time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonPodsTerminating, b.Reason)
	assert.Contains(t, b.Message, "lingering/slow")

	done, _ := s.start(drain.Options{Timeout: time.Minute})
	select {
	case err := <-done:
		t.Fatalf("the drain did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	setFinalizers("null")
	require.NoError(t, <-done)
}

func missingPermission(t *testing.T, w *world) {
	s := w.within(t, "denied")
	s.pod("a", node, "a", true)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "policy"}, Resources: []string{"pods", "poddisruptionbudgets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
	}}
	_, err := w.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: "reader"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	reader := clientFor(t, w.server.As(t, "reader"))
	require.Eventually(t, func() bool {
		_, err := reader.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)

	result, err := drain.New(reader, drain.Options{Timeout: time.Hour}).Drain(t.Context(), node)
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonMissingPermission, b.Reason)
	assert.Contains(t, b.Message, "create pods/eviction in namespace denied")
	assert.Equal(t, 1, result.Requests)

	_, err = drain.New(clientFor(t, w.server.As(t, "nobody")), drain.Options{Timeout: time.Minute}).Drain(t.Context(), node)
	b = requireBlocked(t, err)
	assert.Equal(t, drain.ReasonMissingPermission, b.Reason)
	assert.Contains(t, b.Message, `resource "nodes"`)
}

func terminatingNamespace(t *testing.T, w *world) {
	s := w.within(t, "ending")
	s.pod("a", node, "a", true)
	require.NoError(t, w.client.CoreV1().Namespaces().Delete(t.Context(), s.name, metav1.DeleteOptions{}))
	done, events := s.start(drain.Options{Timeout: 20 * time.Second})
	e := awaitEvent(t, events, drain.EventBlocked, "a")
	assert.Equal(t, drain.ReasonNamespaceTerminating, e.Reason)
	require.NoError(t, w.client.CoreV1().Pods(s.name).Delete(t.Context(), "a", metav1.DeleteOptions{}), "as the namespace controller does")
	require.NoError(t, <-done)
}

func cordon(t *testing.T, w *world) {
	get := func() *corev1.Node {
		n, err := w.client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		require.NoError(t, err)
		return n
	}
	got, err := drain.Cordon(t.Context(), w.client, node, "g1", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	assert.Equal(t, drain.CordonResult{Excluded: true}, got)
	assert.Contains(t, get().Labels, corev1.LabelNodeExcludeBalancers)
	assert.True(t, get().Spec.Unschedulable)
	assert.Equal(t, "g1", get().Annotations[v1alpha1.AnnotationCordonedBy])
	got, err = drain.Cordon(t.Context(), w.client, node, "g1", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	assert.True(t, got.AlreadyOurs)
	require.NoError(t, drain.Uncordon(t.Context(), w.client, node, "g2"))
	assert.True(t, get().Spec.Unschedulable, "of another grant")
	require.NoError(t, drain.Uncordon(t.Context(), w.client, node, "g1"))
	assert.False(t, get().Spec.Unschedulable)
	assert.NotContains(t, get().Annotations, v1alpha1.AnnotationCordonedBy)
	assert.NotContains(t, get().Labels, corev1.LabelNodeExcludeBalancers)

	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	got, err = drain.Cordon(t.Context(), w.client, node, "g3", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	assert.True(t, got.Foreign)
	assert.NotContains(t, get().Annotations, v1alpha1.AnnotationCordonedBy)
	require.NoError(t, drain.Uncordon(t.Context(), w.client, node, "g3"))
	assert.True(t, get().Spec.Unschedulable, "a person's cordon stays")
	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// shippedRoles drains, cordons and uncordons with exactly the roles that are installed.
func shippedRoles(t *testing.T, w *world) {
	files, err := filepath.Glob("../../../deploy/coordinator/rbac/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, ns := range []string{"refit", "refit-system", "kube-node-lease"} {
		require.NoError(t, w.server.Apply(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+"}")))
	}
	require.NoError(t, w.server.ApplyFiles(t.Context(), files...))
	config := w.server.Admin()
	config.Impersonate = rest.ImpersonationConfig{UserName: coordinator, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	shipped := clientFor(t, config)
	require.Eventually(t, func() bool {
		_, err := shipped.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)

	s := w.within(t, "shipped")
	s.pod("web-1", node, "web", true)
	s.pod("web-2", other, "web", true)
	s.budget("web", "web", 2, nil, 0, 2)
	_, err = drain.Cordon(t.Context(), shipped, node, "g", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	_, err = drain.New(shipped, drain.Options{Timeout: time.Second}).Drain(t.Context(), node)
	assert.Equal(t, drain.ReasonEvictionBlocked, requireBlocked(t, err).Reason)
	result, err := drain.New(shipped, drain.Options{Timeout: time.Second, OnTimeout: drain.ActionDelete, AwaitVolumes: true}).Drain(t.Context(), node)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Deleted)
	require.NoError(t, drain.Uncordon(t.Context(), shipped, node, "g"))
}

func freedBudget(t *testing.T, w *world) {
	s := w.within(t, "freed")
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		s.pod(name, node, "web", true)
	}
	s.pod("web-4", other, "web", false)
	s.budget("web", "web", 3, nil, 0, 3)
	done, events := s.start(drain.Options{Timeout: 30 * time.Second})
	for range 3 {
		e := <-events
		require.Equal(t, drain.EventBlocked, e.Kind)
	}
	time.Sleep(300 * time.Millisecond)
	freed := time.Now()
	s.setReady("web-4", true)
	for {
		e := <-events
		if e.Kind == drain.EventEvicted {
			break
		}
	}
	t.Logf("the budget freed; an eviction was accepted %s later", time.Since(freed))
	assert.Less(t, time.Since(freed), fallbackPace, "an event woke it")
	for _, name := range []string{"web-5", "web-6"} { // replacements come up elsewhere
		s.pod(name, other, "web", true)
	}
	require.NoError(t, <-done)
}

// refusedByBudget outlasts refusals of a real budget, of which the audit log tells, and deletes nothing for them.
func refusedByBudget(t *testing.T, w *world) {
	s := w.within(t, "refusing")
	pod := s.pod("web-1", node, "web", true)
	s.pod("web-2", other, "web", false)
	s.budget("web", "web", 1, nil, 0, 1)
	done, events := s.start(drain.Options{Timeout: 2 * time.Minute})
	awaitEvent(t, events, drain.EventBlocked, "web-1")
	refusals := func() int {
		return audit.Read(t, w.server.AuditLog()).Of(s.name).Judge(audit.Rules{Drainers: []string{drainer}}).RefusedByBudget
	}
	require.Eventually(t, func() bool { return refusals() >= 2 }, time.Minute, 200*time.Millisecond, "it is tried again without news")
	held, err := s.client.CoreV1().Pods(s.name).Get(t.Context(), "web-1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, pod.UID, held.UID)
	assert.Nil(t, held.DeletionTimestamp)
	select {
	case err := <-done:
		require.Fail(t, "the drain has ended while its budget refused", "%v", err)
	default:
	}

	s.setReady("web-2", true)
	awaitEvent(t, events, drain.EventEvicted, "web-1")
	require.NoError(t, <-done)
	v := audit.Read(t, w.server.AuditLog()).Of(s.name).Judge(audit.Rules{Drainers: []string{drainer}})
	assert.Equal(t, []int{1, 1, 0}, []int{v.Evictions, v.Charged, v.Deleted})
	assert.Empty(t, v.Violations)
}

func otherUID(t *testing.T, w *world) {
	s := w.within(t, "reborn")
	first := s.pod("db-0", node, "db", true)
	require.NoError(t, s.client.CoreV1().Pods(s.name).Delete(t.Context(), "db-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	second := s.pod("db-0", other, "db", true)
	uid := first.UID
	err := s.client.PolicyV1().Evictions(s.name).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: "db-0", Namespace: s.name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	require.ErrorContains(t, err, "UID in the precondition", "the API server keeps the precondition that a drain sends")
	preconditions := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	aboutPod(t, err, 409, "db-0")
	aboutPod(t, s.client.CoreV1().Pods(s.name).Delete(t.Context(), "db-0", preconditions), 409, "db-0")
	aboutPod(t, s.client.CoreV1().Pods(s.name).Delete(t.Context(), "db-1", preconditions), 404, "db-1")
	aboutPod(t, s.evictDry(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1"}}), 404, "db-1")
	_, err = s.drain(drain.Options{Timeout: 5 * time.Second})
	require.NoError(t, err)
	now, err := s.client.CoreV1().Pods(s.name).Get(t.Context(), "db-0", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, second.UID, now.UID)
}

// aboutPod is how a drain tells the API server's word of a pod from a webhook's refusal with the same code.
func aboutPod(t *testing.T, err error, code int32, name string) {
	t.Helper()
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	require.NotNil(t, status.Status().Details)
	assert.Equal(t, code, status.Status().Code)
	assert.Contains(t, []string{"pods", "Pod"}, status.Status().Details.Kind)
	assert.Equal(t, name, status.Status().Details.Name)
}

// neverBelowBudget watches from outside: an eviction is accepted only while the budget has room.
func neverBelowBudget(t *testing.T, w *world) {
	s := w.within(t, "budgeted")
	const replicas, floor = 6, 5
	for i := range replicas {
		s.pod("web-"+string(rune('a'+i)), node, "web", true)
	}
	s.budget("web", "web", floor, nil, 1, replicas)
	lowest := s.watchServing(replicas)
	done, events := s.start(drain.Options{Timeout: 60 * time.Second})
	born := 0
	for finished := false; !finished; {
		select {
		case e := <-events:
			if e.Kind == drain.EventGone { // a replacement elsewhere, as a ReplicaSet would make
				s.pod("new-"+string(rune('a'+born)), other, "web", true)
				born++
			}
		case err := <-done:
			require.NoError(t, err)
			finished = true
		}
	}
	assert.Equal(t, replicas, born)
	assert.EqualValues(t, floor, lowest.Load(), "the budget was used, and never overdrawn")
}

// watchServing counts the serving pods from outside, once it has seen all of them.
func (s *space) watchServing(all int) *atomic.Int64 {
	watch, err := s.client.CoreV1().Pods(s.name).Watch(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	lowest := &atomic.Int64{}
	lowest.Store(int64(all))
	go func() {
		serving, complete := map[types.UID]bool{}, false
		for e := range watch.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			delete(serving, p.UID)
			if e.Type != "DELETED" && p.DeletionTimestamp == nil && isReady(p) {
				serving[p.UID] = true
			}
			complete = complete || len(serving) == all
			if n := int64(len(serving)); complete && n < lowest.Load() {
				lowest.Store(n)
			}
		}
	}()
	s.t.Cleanup(watch.Stop)
	return lowest
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
