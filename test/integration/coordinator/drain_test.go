package coordinator

import (
	"context"
	"strings"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTheOnlyNodeIsRefusedUntilThePolicySaysInPlace(t *testing.T) {
	w := newWorld(t)
	solo := w.host("solo", "workers", v1alpha1.RoleWorker)
	w.host("cp1", "", v1alpha1.RoleControlPlane)
	taint := `{"spec":{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]}}`
	require.NoError(t, w.admin.Patch(context.Background(), w.node("cp1"), client.RawPatch(types.MergePatchType, []byte(taint))))
	w.pod("app", "solo", true)
	w.pod("coordinator", "solo", true)
	label := `{"metadata":{"labels":{"app.kubernetes.io/name":"refit-coordinator"}}}`
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "coordinator"}}
	require.NoError(t, w.admin.Patch(context.Background(), own, client.RawPatch(types.MergePatchType, []byte(label))))
	w.pool("workers", v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "2.1.4"}})
	w.start()
	w.until("the only node is refused", func() bool { return w.condition("solo", v1alpha1.ConditionWaiting).Reason == "NoCapacity" })
	assert.False(t, w.node("solo").Spec.Unschedulable)
	assert.True(t, w.podExists("app"))
	assert.Empty(t, solo.RanUnder())

	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Drain = &v1alpha1.DrainSpec{SingleNode: "InPlace"}
	})
	w.untilUpToDate("solo")
	assert.Len(t, solo.RanUnder(), 1)
	assert.False(t, w.podExists("app"))
	assert.True(t, w.podExists("coordinator"), "our own pod restarts in place")
}

func TestARebootWaitsForTheVolumesOfPodsThatHaveLeft(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w1 := w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "", v1alpha1.RoleWorker)
	w1.set(func(h *host) { h.Disruption = v1alpha1.DisruptionReboot })
	w.pod("db-0", "w1", true)
	volume := "pv-db"
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-db"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.refit.test", NodeName: "w1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
	require.NoError(t, w.admin.Create(ctx, va))
	t.Cleanup(func() { _ = w.admin.Delete(ctx, va) })
	va.Status.Attached = true
	require.NoError(t, w.admin.Status().Update(ctx, va))
	w.pool("workers", v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "2.1.4"}})
	w.start()
	w.until("the volume is waited for", func() bool {
		return strings.Contains(w.condition("w1", v1alpha1.ConditionDrained).Message, "VolumeAttachment va-db of PersistentVolume pv-db")
	})
	assert.False(t, w.podExists("db-0"))
	assert.Empty(t, w1.RanUnder(), "the host does not go down with a volume attached")
	assert.True(t, w.node("w1").Spec.Unschedulable)
	assert.Contains(t, w.node("w1").Labels, corev1.LabelNodeExcludeBalancers)
	require.NoError(t, w.admin.Delete(ctx, va))
	w.untilUpToDate("w1")
	assert.False(t, w.node("w1").Spec.Unschedulable)
	assert.NotContains(t, w.node("w1").Labels, corev1.LabelNodeExcludeBalancers)
	assert.Empty(t, w.node("w1").Annotations)
}
