package handover_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/handover"
)

const app = "refit-coordinator"

func pod(name, node string, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "refit-system", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app.kubernetes.io/name": app},
	}}
	p.Spec.NodeName = node
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if edit != nil {
		edit(p)
	}
	return p
}

func ownPod() handover.Pod {
	return handover.Pod{Namespace: "refit-system", Name: "a", UID: "uid-a", Node: "w1"}
}

func TestOnlyAReadyPodElsewhereCanFollow(t *testing.T) {
	fleet := New().
		Machine("w1", "", v1alpha1.RoleWorker).
		Machine("w2", "", v1alpha1.RoleWorker).
		Machine("w3", "", v1alpha1.RoleWorker, InSlot(v1alpha1.DisruptionDrain)).
		Machine("w4", "", v1alpha1.RoleWorker, InSlot(v1alpha1.DisruptionRestart)).
		Machine("w5", "", v1alpha1.RoleWorker, NotReady).
		Build()
	for name, tc := range map[string]struct {
		other *corev1.Pod
		can   bool
	}{
		"on a node that is well":               {pod("b", "w2", nil), true},
		"on a node that no Machine stands for": {pod("b", "elsewhere", nil), true},
		"on one whose change moves no pods":    {pod("b", "w4", nil), true},
		"on the same node":                     {pod("b", "w1", nil), false},
		"on one that is emptied itself":        {pod("b", "w3", nil), false},
		"on one that is not ready":             {pod("b", "w5", nil), false},
		"one that is not ready":                {pod("b", "w2", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), false},
		"one that is leaving":                  {pod("b", "w2", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Now}; p.Finalizers = []string{"x"} }), false},
		"another application":                  {pod("b", "w2", func(p *corev1.Pod) { p.Labels = nil }), false},
		"another namespace":                    {pod("b", "w2", func(p *corev1.Pod) { p.Namespace = "default" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset([]runtime.Object{pod("a", "w1", nil), tc.other}...)
			seat, err := handover.Take(t.Context(), kube, ownPod(), app)
			require.NoError(t, err)
			require.NotNil(t, seat)
			next, err := seat.Successor(t.Context(), fleet)
			require.NoError(t, err)
			assert.Equal(t, tc.can, next == "b")
		})
	}
}

func TestAPodOfAnotherClusterHasNoSeatHere(t *testing.T) {
	for name, tc := range map[string]struct {
		there *corev1.Pod
		own   handover.Pod
	}{
		"no such pod":             {pod("z", "w1", nil), ownPod()},
		"one of the same name":    {pod("a", "w1", func(p *corev1.Pod) { p.UID = "other" }), ownPod()},
		"on another node":         {pod("a", "w2", nil), ownPod()},
		"no pod at all":           {pod("a", "w1", nil), handover.Pod{}},
		"nothing told of a node":  {pod("a", "w1", nil), handover.Pod{Namespace: "refit-system", Name: "a", UID: "uid-a"}},
		"only a namespace is set": {pod("a", "w1", nil), handover.Pod{Namespace: "refit-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			seat, err := handover.Take(t.Context(), fake.NewClientset(tc.there), tc.own, app)
			require.NoError(t, err)
			assert.Nil(t, seat)
			assert.False(t, seat.On(New().Machine("w1", "", v1alpha1.RoleWorker).Build().Machines[0]))
		})
	}
}

func TestALeadThatNobodyTookIsNotGivenAwayAgainAtOnce(t *testing.T) {
	own, other := &handover.Seat{Pod: ownPod()}, &handover.Seat{Pod: handover.Pod{UID: "uid-b"}}
	mark := own.Mark(Now)
	assert.True(t, own.Tried(mark, Now.Add(time.Minute)))
	assert.False(t, own.Tried(mark, Now.Add(time.Hour)), "some later rollout")
	assert.False(t, other.Tried(mark, Now.Add(time.Minute)), "whoever took it may give it away in turn")
	assert.False(t, own.Tried("", Now))
	assert.False(t, own.Tried("uid-a yesterday", Now))
}
