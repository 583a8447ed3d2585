package coordinator

import (
	"context"
	"slices"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (w *world) deployment(name string) *v1alpha1.MachineDeployment {
	w.t.Helper()
	d := &v1alpha1.MachineDeployment{}
	require.NoError(w.t, w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, d))
	return d
}

func (w *world) revisions(name string) []*appsv1.ControllerRevision {
	w.t.Helper()
	all, err := machinedeployment.Revisions(context.Background(), w.admin, w.deployment(name))
	require.NoError(w.t, err)
	return all
}

// untilRevisions waits for exactly these numbers, the last of which is the current one.
func (w *world) untilRevisions(name string, want ...int64) []*appsv1.ControllerRevision {
	w.t.Helper()
	var all []*appsv1.ControllerRevision
	w.until("revisions are kept", func() bool {
		all = w.revisions(name)
		var have []int64
		for _, r := range all {
			have = append(have, r.Revision)
		}
		return slices.Equal(have, want) && w.deployment(name).Status.CurrentRevision == all[len(all)-1].Name
	})
	return all
}

func TestEachTemplateOfAPoolIsARevisionAndOneThatComesBackIsTheSame(t *testing.T) {
	w := newWorld(t)
	w.pool("empty", workerAt("v1.36.1"), func(d *v1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{machinedeployment.AnnotationChangeCause: "the first"}
		d.Spec.RevisionHistoryLimit = ptr[int32](2)
	})
	w.start()
	first := w.untilRevisions("empty", 1)[0]
	assert.Equal(t, "the first", first.Annotations[machinedeployment.AnnotationChangeCause])
	template, err := machinedeployment.TemplateOf(first)
	require.NoError(t, err)
	assert.EqualValues(t, "v1.36.1", template.Spec.Versions.Kubelet)

	to := func(version v1alpha1.KubernetesVersion) {
		w.edit("empty", func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Versions.Kubelet = version })
	}
	to("v1.36.2")
	w.untilRevisions("empty", 1, 2)
	to("v1.36.1")
	again := w.untilRevisions("empty", 2, 3)
	assert.Equal(t, first.UID, again[1].UID, "the same object, under a new number")
	to("v1.36.4")
	w.untilRevisions("empty", 2, 3, 4)
	to("v1.36.5")
	w.untilRevisions("empty", 3, 4, 5)

	w.kill() // whoever deletes one, and a restart, change nothing of the numbers
	require.NoError(t, w.admin.Delete(context.Background(), w.revisions("empty")[2]))
	w.start()
	w.untilRevisions("empty", 3, 4, 5)
}
