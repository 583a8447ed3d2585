package drain_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	clidrain "github.com/refit-dev/refit/cli/drain"
	"github.com/refit-dev/refit/pkg/drain"
)

// world has two nodes; an eviction that goes through deletes the pod.
func world(objects ...runtime.Object) *fake.Clientset {
	for _, name := range []string{"w1", "w2"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}})
	}
	c := fake.NewClientset(objects...)
	c.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		e := a.(k8stesting.CreateAction).GetObject().(*policyv1.Eviction)
		go func() {
			time.Sleep(20 * time.Millisecond)
			_ = c.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), e.Namespace, e.Name)
		}()
		return true, nil, nil
	})
	return c
}

func pod(name, node string, bare bool) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &yes}}},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if bare {
		p.OwnerReferences = nil
	}
	return p
}

// closed is a budget that never lets the pods of its app go.
func closed(app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, UID: types.UID(app)},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1},
	}
}

func cordoned(t *testing.T, c *fake.Clientset, node string) bool {
	t.Helper()
	n, err := c.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, n.Annotations, "a person's cordon is plain")
	return n.Spec.Unschedulable
}

// onlyPodsOf lists pods by node: this client's field selectors select all.
func onlyPodsOf(c *fake.Clientset) {
	c.PrependReactor("list", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		host, given := a.(k8stesting.ListAction).GetListRestrictions().Fields.RequiresExactMatch("spec.nodeName")
		all, err := c.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "")
		if err != nil || !given {
			return given, nil, err
		}
		out := &corev1.PodList{}
		for _, p := range all.(*corev1.PodList).Items {
			if p.Spec.NodeName == host {
				out.Items = append(out.Items, p)
			}
		}
		return true, out, nil
	})
	c.PrependWatchReactor("pods", func(a k8stesting.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker().Watch(corev1.SchemeGroupVersion.WithResource("pods"), a.GetNamespace())
		return true, w, err
	})
}

func TestADrainedNodeStaysCordonedAndAnyOtherIsGivenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		objects  []runtime.Object
		before   bool
		keep     bool
		drained  bool
		cordoned bool
		says     string
	}{
		"drained":                              {drained: true, cordoned: true, says: "node/w1 drained in 0s: 1 pod evicted; it stays cordoned until kubectl uncordon w1"},
		"blocked":                              {objects: []runtime.Object{closed("a")}, says: "node/w1 uncordoned: it takes pods again"},
		"blocked, and to be kept":              {objects: []runtime.Object{closed("a")}, keep: true, cordoned: true, says: "node/w1 it stays cordoned, as --keep-cordon asks"},
		"blocked, and cordoned before":         {objects: []runtime.Object{closed("a")}, before: true, cordoned: true, says: "node/w1 it stays cordoned, as it was before"},
		"refused at once, before any eviction": {objects: []runtime.Object{pod("debug", "w1", true)}, says: "shop/debug"},
		"drained, and cordoned before by hand": {before: true, drained: true, cordoned: true, says: "node/w1 already cordoned; it stays so whatever comes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := world(append(tc.objects, pod("a", "w1", false))...)
			onlyPodsOf(c)
			if tc.before {
				_, err := c.CoreV1().Nodes().Patch(t.Context(), "w1", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
				require.NoError(t, err)
			}
			var out bytes.Buffer
			r := &clidrain.Runner{Kube: c, Options: drain.Options{Timeout: time.Second}, Report: clidrain.Text{Out: &out}, KeepCordon: tc.keep, Heartbeat: time.Hour}
			err := r.Run(t.Context(), []string{"w1"})
			assert.Equal(t, tc.drained, err == nil, "%v", err)
			assert.Equal(t, !tc.drained, err != nil && clidrain.Blocked(err))
			assert.Equal(t, tc.cordoned, cordoned(t, c, "w1"))
			assert.Contains(t, out.String(), tc.says)
		})
	}
}

func TestANodeIsGivenBackAlthoughTheAPIServerIsAwayForAMoment(t *testing.T) {
	c := world(pod("a", "w1", false), pod("debug", "w1", true))
	onlyPodsOf(c)
	away := 0
	c.PrependReactor("patch", "nodes", func(a k8stesting.Action) (bool, runtime.Object, error) {
		takesOff := bytes.Contains(a.(k8stesting.PatchAction).GetPatch(), []byte(`"unschedulable":false`))
		if takesOff {
			away++
		}
		return takesOff && away < 4, nil, errors.New("dial tcp: connection refused")
	})
	r := &clidrain.Runner{Kube: c, Options: drain.Options{Timeout: time.Second}, Report: clidrain.Text{Out: &bytes.Buffer{}}, Heartbeat: time.Hour}
	err := r.Run(t.Context(), []string{"w1"})
	require.True(t, clidrain.Blocked(err), "%v", err)
	assert.Equal(t, 4, away)
	assert.False(t, cordoned(t, c, "w1"))
}

func TestANodeThatCannotBeDrainedDoesNotKeepTheOthers(t *testing.T) {
	c := world(pod("a", "w1", false), closed("a"), pod("b", "w2", false))
	onlyPodsOf(c)
	var out bytes.Buffer
	r := &clidrain.Runner{Kube: c, Options: drain.Options{Timeout: time.Second}, Report: clidrain.Text{Out: &out}, Heartbeat: 200 * time.Millisecond}
	err := r.Run(t.Context(), []string{"w1", "w2"})
	require.True(t, clidrain.Blocked(err))
	assert.ErrorContains(t, err, "node w1: EvictionBlocked")
	assert.Equal(t, []bool{false, true}, []bool{cordoned(t, c, "w1"), cordoned(t, c, "w2")})
	assert.Regexp(t, `(?s)node/w1 cordoned\nnode/w2 cordoned\n.*node/w1 not drained.*node/w2 drained`, out.String())
	assert.Regexp(t, `pod shop/a blocked since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: EvictionBlocked: budget a allows 0 disruptions`, out.String())
	assert.Regexp(t, `node/w1 1 of 1 pod left; shop/a blocked since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(EvictionBlocked\)`, out.String())
}

func TestAnInterruptionGivesBackEveryNodeThatIsNotDrained(t *testing.T) {
	c := world(pod("a", "w1", false), closed("a"))
	onlyPodsOf(c)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	r := &clidrain.Runner{Kube: c, Options: drain.Options{Timeout: time.Hour}, Report: interrupting{clidrain.Text{Out: &out}, cancel}, Heartbeat: time.Hour}
	err := r.Run(ctx, []string{"w1", "w2"})
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, clidrain.Blocked(err))
	assert.False(t, cordoned(t, c, "w1"))
	assert.False(t, cordoned(t, c, "w2"))
	assert.Contains(t, out.String(), "node/w2 uncordoned")
}

// interrupting is a person who has seen enough at the first blocked pod.
type interrupting struct {
	clidrain.Text
	cancel func()
}

func (i interrupting) Event(node string, e drain.Event) {
	i.Text.Event(node, e)
	if e.Kind == drain.EventBlocked {
		i.cancel()
	}
}

// meddling lets others work on the node at the first blocked pod.
type meddling struct {
	clidrain.Text
	once *sync.Once
	do   func()
}

func (m meddling) Event(node string, e drain.Event) {
	m.Text.Event(node, e)
	if e.Kind == drain.EventBlocked {
		m.once.Do(m.do)
	}
}

func TestTheEndOfADrainSaysWhatTheCordonHasComeToAndLeavesThatOfOthers(t *testing.T) {
	const uncordon, cordon = `{"spec":{"unschedulable":null}}`, `{"spec":{"unschedulable":true}}`
	const refits = `{"metadata":{"annotations":{"refit.dev/cordoned-by":"g1"}},"spec":{"unschedulable":true}}`
	for name, tc := range map[string]struct {
		patches          []string
		opens            bool // and the budget lets the pod go
		gone             bool
		before, cordoned bool
		says             string
	}{
		"uncordoned by hand":                    {patches: []string{uncordon}, says: "it is not cordoned any more: somebody else has uncordoned it, and it takes pods"},
		"uncordoned by hand, and before":        {patches: []string{uncordon}, before: true, says: "it is not cordoned any more: somebody else has uncordoned it, and it takes pods"},
		"Refit's by now":                        {patches: []string{uncordon, refits}, cordoned: true, says: "it stays cordoned: the cordon is Refit's by now (grant g1)"},
		"marked without an uncordon":            {patches: []string{refits}, cordoned: true, says: "it stays cordoned: the cordon is Refit's by now (grant g1)"},
		"somebody else's by now":                {patches: []string{uncordon, cordon}, cordoned: true, says: "it stays cordoned: somebody has uncordoned it meanwhile"},
		"drained, uncordoned by hand":           {patches: []string{uncordon}, opens: true, says: "but somebody has uncordoned it meanwhile, and it takes pods"},
		"drained, somebody else's by now":       {patches: []string{uncordon, cordon}, opens: true, cordoned: true, says: "but somebody has uncordoned it meanwhile, and pods may have come"},
		"drained, Refit's by now":               {patches: []string{refits}, opens: true, cordoned: true, says: "the cordon is Refit's (grant g1)"},
		"the Node is deleted, and nobody waits": {gone: true, says: "node/w1 it is gone: somebody has deleted the Node"},
	} {
		t.Run(name, func(t *testing.T) {
			c := world(pod("a", "w1", false), closed("a"))
			onlyPodsOf(c)
			news := watch.NewFake() // each event waits until the one before was looked at
			c.PrependWatchReactor("nodes", func(k8stesting.Action) (bool, watch.Interface, error) { return true, news, nil })
			change := func(body string) *corev1.Node {
				n, err := c.CoreV1().Nodes().Patch(t.Context(), "w1", types.MergePatchType, []byte(body), metav1.PatchOptions{})
				require.NoError(t, err)
				return n
			}
			if tc.before {
				change(cordon)
			}
			var out bytes.Buffer
			timeout := time.Second
			if tc.opens || tc.gone {
				timeout = time.Hour
			}
			r := &clidrain.Runner{Kube: c, Options: drain.Options{Timeout: timeout}, Heartbeat: time.Hour, Report: meddling{clidrain.Text{Out: &out}, &sync.Once{}, func() {
				for _, p := range tc.patches {
					n := change(p)
					news.Modify(n)
					news.Modify(n)
				}
				if tc.opens {
					require.NoError(t, c.PolicyV1().PodDisruptionBudgets("shop").Delete(t.Context(), "a", metav1.DeleteOptions{}))
				}
				if tc.gone {
					require.NoError(t, c.CoreV1().Nodes().Delete(t.Context(), "w1", metav1.DeleteOptions{}))
					news.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "w1", ResourceVersion: "1"}})
				}
			}}}
			err := r.Run(t.Context(), []string{"w1"})
			assert.Equal(t, !tc.opens, err != nil && clidrain.Blocked(err), "%v", err)
			assert.Contains(t, out.String(), tc.says)
			if n, err := c.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{}); !tc.gone {
				require.NoError(t, err)
				assert.Equal(t, tc.cordoned, n.Spec.Unschedulable)
			}
		})
	}
}

func TestANodeThatCannotBeCordonedGivesTheOthersBack(t *testing.T) {
	c := world()
	r := &clidrain.Runner{Kube: c, Report: clidrain.Text{Out: &bytes.Buffer{}}, Heartbeat: time.Hour}
	require.ErrorContains(t, r.Run(t.Context(), []string{"w1", "w9"}), "cordoning node w9")
	assert.False(t, cordoned(t, c, "w1"))
}

func TestACordonThatNoRoleAllowsIsARefusal(t *testing.T) {
	c := world()
	c.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "w1", errors.New("no role"))
	})
	r := &clidrain.Runner{Kube: c, Report: clidrain.Text{Out: &bytes.Buffer{}}, Heartbeat: time.Hour}
	err := r.Run(t.Context(), []string{"w1"})
	assert.True(t, clidrain.Blocked(err))
	assert.ErrorContains(t, err, "MissingPermission: cordoning node w1")
}

func TestAllFlagsThatADrainNeedsAreNamedAtOnce(t *testing.T) {
	withData := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		return p
	}
	for name, tc := range map[string]struct {
		pods  []runtime.Object
		flags []string
	}{
		"a bare pod and one with data": {[]runtime.Object{pod("debug", "w1", true), withData(pod("cache", "w1", false))}, []string{"--force", "--delete-emptydir-data"}},
		"a bare pod with data":         {[]runtime.Object{withData(pod("debug", "w1", true))}, []string{"--delete-emptydir-data", "--force"}},
		"a pod with data":              {[]runtime.Object{withData(pod("cache", "w1", false))}, []string{"--delete-emptydir-data"}},
		"a bare pod":                   {[]runtime.Object{pod("debug", "w1", true)}, []string{"--force"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := world(tc.pods...)
			onlyPodsOf(c)
			var out bytes.Buffer
			opts := drain.Options{Timeout: time.Second, EmptyDir: drain.ActionFail, UnmanagedPods: drain.ActionFail}
			r := &clidrain.Runner{Kube: c, Options: opts, Report: clidrain.Text{Out: &out}, Heartbeat: time.Hour}
			require.True(t, clidrain.Blocked(r.Run(t.Context(), []string{"w1"})))
			assert.Contains(t, out.String(), "(here: "+strings.Join(tc.flags, " ")+")\n")
		})
	}
}

func TestANodeIsRefitsWhileASlotOrAMarkerSaysSo(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	slot := func(machine string) []v1alpha1.Ledger {
		return []v1alpha1.Ledger{{ObjectMeta: metav1.ObjectMeta{Namespace: "refit"}, Spec: v1alpha1.LedgerSpec{Slots: []v1alpha1.Slot{{Machine: machine, GrantID: "g1", State: v1alpha1.SlotReserved}}}}}
	}
	assert.Empty(t, clidrain.Owned(n, nil))
	assert.Empty(t, clidrain.Owned(n, slot("w2")))
	assert.Equal(t, "Machine refit/w1 is in an operation of Refit's (grant g1, Reserved)", clidrain.Owned(n, slot("w1")))
	n.Annotations = map[string]string{v1alpha1.AnnotationCordonedBy: "g2"}
	assert.Equal(t, "node w1 is cordoned by Refit (grant g2)", clidrain.Owned(n, nil))
}

func TestOnlyPodsInTheWayAreARefusal(t *testing.T) {
	blocked := &drain.Blocked{Reason: drain.ReasonPDBOverlap}
	assert.True(t, clidrain.Blocked(errors.Join(blocked, errors.Join(blocked))))
	assert.False(t, clidrain.Blocked(errors.Join(blocked, errors.New("no answer"))))
	assert.False(t, clidrain.Blocked(errors.New("no answer")))
}
