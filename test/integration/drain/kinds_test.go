package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/pkg/drain"
)

// ofDaemonSet is the ownership of a DaemonSet that exists.
func (s *space) ofDaemonSet() func(*corev1.Pod) {
	s.t.Helper()
	labels := map[string]string{"app": "cni"}
	ds, err := s.client.AppsV1().DaemonSets(s.name).Create(s.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "cni"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	}
}

// kinds has a pod of each kind that stays, and of each that leaves, on one node.
func kinds(t *testing.T, w *world) {
	s := w.within(t, "kinds")
	s.pod("cni", node, "cni", true, s.ofDaemonSet(), withEmptyDir)
	s.pod("mirror", node, "mirror", true, bare, func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	})
	s.pod("job", node, "job", true, s.ofJob())
	s.end("job")
	s.pod("failed", node, "failed", true, bare)
	s.patchStatus("failed", `{"status":{"phase":"Failed"}}`)
	s.pod("web", node, "web", true)
	s.pod("cache", node, "cache", true, withEmptyDir)
	s.pod("pending", node, "pending", false)
	s.patchStatus("pending", `{"status":{"phase":"Pending"}}`)
	result, err := s.drain(drain.Options{Timeout: 30 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, 3, result.Evicted)
	list, err := s.client.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var left []string
	for _, p := range list.Items {
		left = append(left, p.Name)
	}
	assert.ElementsMatch(t, []string{"cni", "mirror", "job", "failed"}, left)
}

// unreadDaemonSets drains with a role that may do everything but read DaemonSets.
func unreadDaemonSets(t *testing.T, w *world) {
	s := w.within(t, "unread")
	s.pod("cni", node, "cni", true, s.ofDaemonSet())
	s.pod("web", node, "web", true)
	_, err := w.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "evictor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "policy"}, Resources: []string{"pods", "poddisruptionbudgets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "evictor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "evictor"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: "evictor"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	evictor := clientFor(t, w.server.As(t, "evictor"))
	require.Eventually(t, func() bool {
		_, err := evictor.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)

	result, err := drain.New(evictor, drain.Options{Timeout: time.Hour}).Drain(t.Context(), node)
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonMissingPermission, b.Reason)
	assert.Contains(t, b.Message, "may not get daemonsets.apps")
	assert.True(t, b.Permanent)
	assert.Zero(t, result.Requests, "nothing is evicted by a drain that cannot end")
}
