package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/pkg/drain"
)

func bare(p *corev1.Pod) { p.OwnerReferences = nil }

func withEmptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// latecomers appear while a budget holds the pod that was there before.
func latecomers(t *testing.T, w *world) {
	s := w.within(t, "late")
	opts := drain.Options{Timeout: time.Minute, EmptyDir: drain.ActionFail}
	s.pod("web-1", node, "web", true)
	s.pod("web-2", other, "web", false)
	s.budget("web", "web", 1, nil, 0, 1)
	done, events := s.start(opts)
	awaitEvent(t, events, drain.EventBlocked, "web-1")
	s.pod("shell", node, "shell", true, bare)
	s.pod("cache", node, "cache", true, withEmptyDir)
	assert.Equal(t, drain.ReasonUnmanagedPods, awaitEvent(t, events, drain.EventBlocked, "shell").Reason)
	assert.Equal(t, drain.ReasonEmptyDirPods, awaitEvent(t, events, drain.EventBlocked, "cache").Reason)
	require.Empty(t, done)
	s.setReady("web-2", true)
	awaitEvent(t, events, drain.EventGone, "web-1")
	require.Empty(t, done, "the two are waited for")
	s.patch("shell", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"1","controller":true}]}}`)
	awaitEvent(t, events, drain.EventEvicted, "shell")
	require.NoError(t, s.client.CoreV1().Pods(s.name).Delete(t.Context(), "cache", metav1.DeleteOptions{}), "by its owner")
	require.NoError(t, <-done)
}
