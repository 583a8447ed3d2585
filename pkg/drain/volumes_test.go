package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/pkg/drain"
)

func attachment(name, volume, on string, attached bool) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.test", NodeName: on, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: attached},
	}
}

func withClaim(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

func claim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

func TestVolumesAreWaitedForOnlyWhereTheHostGoesDown(t *testing.T) {
	c := newCluster(t, pod("db", withClaim("data")), claim("data", "pv-1"), attachment("va-1", "pv-1", node, true))
	result, err := c.drain(t, drain.Options{})
	require.NoError(t, err, "a restarted kubelet keeps volumes")
	assert.Empty(t, result.Volumes)
}

func TestTheVolumesOfPodsThatHaveLeftAreWaitedFor(t *testing.T) {
	c := newCluster(t, pod("db", withClaim("data")), claim("data", "pv-1"), attachment("va-1", "pv-1", node, true))
	waiting := make(chan drain.Event, 10)
	done := make(chan error, 1)
	go func() {
		_, err := drain.New(c, drain.Options{AwaitVolumes: true, Progress: only(drain.EventWaiting, waiting)}).Quick().Drain(t.Context(), node)
		done <- err
	}()
	e := <-waiting
	assert.Equal(t, drain.ReasonVolumesAttached, e.Reason)
	assert.Contains(t, e.Message, "VolumeAttachment va-1 of PersistentVolume pv-1 (csi.test)")
	time.Sleep(200 * time.Millisecond) // for the watch to begin
	require.Empty(t, done)
	require.NoError(t, c.StorageV1().VolumeAttachments().Delete(t.Context(), "va-1", metav1.DeleteOptions{}))
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the drain hangs")
	}
}

func TestVolumesThatAreNoConcernOfTheDrainAreNotWaitedFor(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"none at all":                     {pod("a")},
		"another node's":                  {pod("a"), attachment("va", "pv", "host-2", true)},
		"one that is not attached":        {pod("a"), attachment("va", "pv", node, false)},
		"a DaemonSet's, which stays":      {daemonSet("cni"), pod("d", ofDaemonSet("cni"), withClaim("data")), claim("data", "pv"), attachment("va", "pv", node, true)},
		"one that a staying pod shares":   {daemonSet("cni"), pod("d", ofDaemonSet("cni"), withClaim("data")), pod("a", withClaim("data")), claim("data", "pv"), attachment("va", "pv", node, true)},
		"one left behind with its pod":    {pod("a", withClaim("data"), leavingSince(time.Hour)), claim("data", "pv"), attachment("va", "pv", node, true)},
		"a claim that has gone meanwhile": {daemonSet("cni"), pod("d", ofDaemonSet("cni"), withClaim("data"))},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, objects...)
			_, err := c.drain(t, drain.Options{AwaitVolumes: true, VolumeDetachTimeout: 5 * time.Second, SkipWaitForDeleteTimeout: time.Minute})
			require.NoError(t, err)
		})
	}
}

func TestVolumesThatStayAttachedFollowThePolicy(t *testing.T) {
	stuck := func(t *testing.T) *cluster {
		va := attachment("va-1", "pv-1", node, true)
		va.Status.DetachError = &storagev1.VolumeError{Message: "the array does not answer"}
		return newCluster(t, pod("db"), va)
	}
	opts := drain.Options{AwaitVolumes: true, VolumeDetachTimeout: 300 * time.Millisecond}
	t.Run("Fail", func(t *testing.T) {
		_, err := stuck(t).drain(t, opts)
		b := requireBlocked(t, err)
		assert.Equal(t, drain.ReasonVolumesAttached, b.Reason)
		assert.Contains(t, b.Message, "the array does not answer")
		assert.Contains(t, b.Message, "set drain.onVolumesAttached to Proceed")
		require.Len(t, b.Volumes, 1)
		assert.Equal(t, "pv-1", b.Volumes[0].Volume)
	})
	t.Run("Proceed, with a warning", func(t *testing.T) {
		warnings := make(chan drain.Event, 10)
		opts := opts
		opts.OnVolumesAttached, opts.Progress = drain.ActionProceed, only(drain.EventWarning, warnings)
		result, err := stuck(t).drain(t, opts)
		require.NoError(t, err)
		require.Len(t, result.Volumes, 1)
		w := <-warnings
		assert.Equal(t, drain.ReasonVolumesAttached, w.Reason)
		assert.Contains(t, w.Message, "VolumeAttachment va-1")
	})
}

func TestAMissingPermissionForVolumesIsNamed(t *testing.T) {
	c := newCluster(t)
	deny("list", "volumeattachments")(c)
	_, err := c.drain(t, drain.Options{AwaitVolumes: true, VolumeDetachTimeout: time.Hour})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonMissingPermission, b.Reason)
	assert.Contains(t, b.Message, "volumeattachments")
}
