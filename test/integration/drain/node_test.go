package drain

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

func (w *world) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

func (s *space) patch(name, patch string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Pods(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

func givesBack(t *testing.T, w *world) {
	s := w.within(t, "back")
	s.pod("web-1", node, "web", true)
	s.pod("free", node, "free", true)
	s.budget("web", "web", 1, nil, 0, 1)
	_, err := drain.New(w.drainer, drain.Options{Timeout: time.Second}).Take(t.Context(), node, "g-failed")
	assert.Equal(t, drain.ReasonEvictionBlocked, requireBlocked(t, err).Reason)
	assertServes := func() {
		n := w.node(t, node)
		assert.False(t, n.Spec.Unschedulable)
		assert.NotContains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
		assert.NotContains(t, n.Annotations, v1alpha1.AnnotationCordonedBy)
		assert.NotContains(t, n.Annotations, v1alpha1.AnnotationExcludedBy)
	}
	assertServes()

	ctx, abort := context.WithCancel(t.Context())
	opts := drain.Options{Timeout: time.Hour, Progress: func(drain.Event) {
		n := w.node(t, node)
		assert.True(t, n.Spec.Unschedulable)
		assert.Contains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
		abort()
	}}
	_, err = drain.New(w.drainer, opts).Take(ctx, node, "g-aborted")
	require.ErrorIs(t, err, context.Canceled)
	assertServes()
}

func preCordoned(t *testing.T, w *world) {
	s := w.within(t, "quarantined")
	s.pod("a", node, "a", true)
	set := func(unschedulable string) {
		_, err := w.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(`{"spec":{"unschedulable":`+unschedulable+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	set("true")
	result, err := drain.New(w.drainer, drain.Options{Timeout: 20 * time.Second}).Take(t.Context(), node, "g")
	require.NoError(t, err)
	assert.Equal(t, 1, result.Evicted, "a cordoned node may be full")
	require.NoError(t, drain.Uncordon(t.Context(), w.drainer, node, "g"))
	assert.True(t, w.node(t, node).Spec.Unschedulable, "a person's cordon stays")
	assert.NotContains(t, w.node(t, node).Labels, corev1.LabelNodeExcludeBalancers, "and what was ours does not")
	set("null")
}

func orphanedDaemon(t *testing.T, w *world) {
	s := w.within(t, "orphaned")
	s.pod("d-1", node, "d", true)
	s.pod("free", node, "free", true)
	s.patch("d-1", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"gone","uid":"1","controller":true}]}}`)
	result, err := s.drain(drain.Options{Timeout: 10 * time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonUnmanagedPods, b.Reason)
	assert.Contains(t, b.Message, "orphaned/d-1")
	assert.Contains(t, b.Message, "its DaemonSet gone is gone")
	assert.Zero(t, result.Requests, "nothing is evicted by a drain that cannot end")

	result, err = s.drain(drain.Options{Timeout: 10 * time.Second, UnmanagedPods: drain.ActionEvict})
	require.NoError(t, err)
	assert.Equal(t, 2, result.Evicted)
}

func volumes(t *testing.T, w *world) {
	s := w.within(t, "volumes")
	s.pod("db-0", node, "db", true)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv-db",
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	_, err := w.client.CoreV1().PersistentVolumeClaims(s.name).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	attach := func(name, volume, on string) {
		va, err := w.client.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.refit.test", NodeName: on, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		va.Status.Attached = true
		_, err = w.client.StorageV1().VolumeAttachments().UpdateStatus(t.Context(), va, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	attach("va-db", "pv-db", node)
	attach("va-other", "pv-other", other)
	t.Cleanup(func() {
		_ = w.client.StorageV1().VolumeAttachments().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
	})

	reboot := drain.Options{Timeout: 20 * time.Second, AwaitVolumes: true, VolumeDetachTimeout: time.Second}
	_, err = s.drain(reboot)
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonVolumesAttached, b.Reason)
	require.Len(t, b.Volumes, 1)
	assert.Equal(t, "va-db", b.Volumes[0].Attachment)

	reboot.OnVolumesAttached = drain.ActionProceed
	result, err := s.drain(reboot)
	require.NoError(t, err)
	assert.Len(t, result.Volumes, 1)

	reboot.OnVolumesAttached, reboot.VolumeDetachTimeout = drain.ActionFail, time.Minute
	done, events := s.start(reboot)
	e := awaitEvent(t, events, drain.EventWaiting, "")
	assert.Contains(t, e.Message, "va-db")
	require.Empty(t, done)
	require.NoError(t, w.client.StorageV1().VolumeAttachments().Delete(t.Context(), "va-db", metav1.DeleteOptions{}), "as the attacher does")
	require.NoError(t, <-done)
}

func unreachable(t *testing.T, w *world) {
	const lost = "host-lost"
	_, err := w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), lost, types.MergePatchType, []byte(
		`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	w.dead.Store(lost, true)
	s := w.within(t, "lost")
	s.pod("a", lost, "a", true, func(p *corev1.Pod) { grace := int64(1); p.Spec.TerminationGracePeriodSeconds = &grace })

	_, err = drain.New(w.drainer, drain.Options{Timeout: 2 * time.Second}).Drain(t.Context(), lost)
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonNodeUnreachable, b.Reason)
	assert.Contains(t, b.Message, "lost/a")
	assert.Contains(t, b.Message, "node host-lost has been unreachable since 2026-01-01T00:00:00Z")

	result, err := drain.New(w.drainer, drain.Options{Timeout: time.Hour, SkipWaitForDeleteTimeout: time.Second}).Drain(t.Context(), lost)
	require.NoError(t, err)
	require.Len(t, result.Remaining, 1)
	assert.Equal(t, "a", result.Remaining[0].Name)
}

func ordered(t *testing.T, w *world) {
	s := w.within(t, "ordered")
	for name, order := range map[string]string{"storage": "100", "ingress": "90", "app": "0"} {
		s.pod(name, node, name, true)
		s.patch(name, `{"metadata":{"labels":{"refit.dev/drain-order":"`+order+`"}}}`)
	}
	done, events := s.start(drain.Options{Timeout: 30 * time.Second})
	require.NoError(t, <-done)
	var gone []string
	for len(gone) < 3 {
		e := <-events
		if e.Kind == drain.EventEvicted && len(gone) > 0 {
			assert.Equal(t, 3-len(gone), e.Remaining, "the pods before it have left")
		}
		if e.Kind == drain.EventGone {
			gone = append(gone, e.Name)
		}
	}
	assert.Equal(t, []string{"app", "ingress", "storage"}, gone)
}

// refusedByAdmission tells a 403 of admission from one of a role, and outlasts it.
func refusedByAdmission(t *testing.T, w *world) {
	s := w.within(t, "guarded")
	s.pod("a", node, "a", true)
	fail := admissionv1.Fail
	_, err := w.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-evictions"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.name}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					onPods(admissionv1.Create, "pods/eviction"), onPods(admissionv1.Delete, "pods"),
				},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "this database moves first"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "no-evictions"},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "no-evictions", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	dry := s.pod("dry", other, "dry", true)
	require.Eventually(t, func() bool { // until the API server has taken the policy in
		return s.evictDry(dry) != nil
	}, 20*time.Second, 50*time.Millisecond)

	_, err = s.drain(drain.Options{Timeout: 2 * time.Second})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonEvictionForbidden, b.Reason)
	assert.False(t, b.Permanent)
	assert.Contains(t, b.Message, "this database moves first")

	_, err = s.drain(drain.Options{Timeout: time.Second, OnTimeout: drain.ActionDelete})
	b = requireBlocked(t, err)
	assert.Equal(t, drain.ReasonDeletionForbidden, b.Reason)
	assert.Contains(t, b.Message, "this database moves first")

	require.NoError(t, w.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), "no-evictions", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return s.evictDry(dry) == nil }, 20*time.Second, 50*time.Millisecond)
	_, err = s.drain(drain.Options{Timeout: 20 * time.Second})
	require.NoError(t, err)
}

func onPods(operation admissionv1.OperationType, resource string) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{operation},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}
}

func deadline(t *testing.T, w *world) {
	s := w.within(t, "deadline")
	s.pod("web-1", node, "web", true)
	s.budget("web", "web", 1, nil, 0, 1)
	opts := drain.Options{Timeout: time.Second, OnTimeout: drain.ActionProceed}
	result, err := s.drain(opts)
	require.NoError(t, err)
	require.Len(t, result.Remaining, 1)
	assert.Equal(t, []string{"web"}, result.Remaining[0].PDBs, "what is left is named")
	opts.OnTimeout = drain.ActionDelete
	result, err = s.drain(opts)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Deleted)
}
