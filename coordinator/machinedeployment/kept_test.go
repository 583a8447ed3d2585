package machinedeployment

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestRevisionsAreReadAnewWhenTheyOrTheTemplateHaveChanged(t *testing.T) {
	revision := func(uid, version string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version, Name: uid}}
	}
	none := int32(0)
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 2}}
	known := []*appsv1.ControllerRevision{revision("a", "7")}
	var k kept
	assert.Empty(t, k.current(d, known), "nothing is known yet")
	k.keep(d, known, "a")
	assert.Equal(t, "a", k.current(d, known))
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MachineDeployment)
		known  []*appsv1.ControllerRevision
	}{
		"another template":                    {func(d *v1alpha1.MachineDeployment) { d.Generation++ }, known},
		"another cause":                       {func(d *v1alpha1.MachineDeployment) { d.Annotations = map[string]string{AnnotationChangeCause: "b"} }, known},
		"another deployment of the same name": {func(d *v1alpha1.MachineDeployment) { d.UID = "e" }, known},
		"a revision was written":              {func(*v1alpha1.MachineDeployment) {}, []*appsv1.ControllerRevision{revision("a", "8")}},
		"there is another one":                {func(*v1alpha1.MachineDeployment) {}, append(known, revision("b", "9"))},
		"more than are kept": {func(d *v1alpha1.MachineDeployment) { d.Spec.RevisionHistoryLimit = &none },
			append(known, revision("b", "9"), revision("c", "10"))},
	} {
		t.Run(name, func(t *testing.T) {
			other := d.DeepCopy()
			tc.change(other)
			assert.Empty(t, k.current(other, tc.known))
		})
	}
	many := append(known, revision("b", "9"))
	d.Spec.RevisionHistoryLimit = &none
	k.keep(d, append(many, revision("c", "10")), "c")
	assert.Empty(t, k.current(d, append(many, revision("c", "10"))), "machines say which of too many are in use")
}
