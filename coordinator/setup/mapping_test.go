package setup

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// mapperOf is a mapper whose cache has the objects.
func mapperOf(t *testing.T, objects ...client.Object) mapper {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return mapper{changes: &fleet.Changes{}, cache: fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&v1alpha1.Machine{}, indexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(objects...).Build()}
}

func TestANodeWithoutAMachineConcernsTheMachinesThatItsKubeletMayHold(t *testing.T) {
	machine := func(namespace, name string, role v1alpha1.Role) client.Object {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		m.Spec.Roles = []v1alpha1.Role{role}
		return m
	}
	m := mapperOf(t, machine("a", "cp-1", v1alpha1.RoleControlPlane), machine("a", "w-1", v1alpha1.RoleWorker), machine("a", "e-2", v1alpha1.RoleEtcd), machine("b", "w-2", v1alpha1.RoleWorker))
	names := func(requests []ctrl.Request) (out []string) {
		for _, r := range requests {
			out = append(out, r.String())
		}
		return out
	}
	versions := func(object client.Object) []string { return names(m.concerned(context.Background(), object)) }
	assert.ElementsMatch(t, []string{"a/cp-1", "a/e-2"}, versions(machine("a", "e-1", v1alpha1.RoleEtcd)), "members of etcd wait for each other, and control planes for them")
	assert.ElementsMatch(t, []string{"a/cp-1"}, versions(machine("a", "w-9", v1alpha1.RoleWorker)))
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	plane := map[string]string{"node-role.kubernetes.io/control-plane": ""}

	assert.ElementsMatch(t, []string{"a/cp-1"}, names(m.concernedByNode(context.Background(), node("stranger", nil))), "a kubelet holds control planes")
	assert.ElementsMatch(t, []string{"a/cp-1", "a/w-1", "a/e-2", "b/w-2"}, names(m.concernedByNode(context.Background(), node("stranger", plane))), "a control plane holds kubelets")
	assert.Equal(t, []string{"/a", "/b"}, names(m.namespacesOfNode(context.Background(), node("stranger", nil))))
	assert.Equal(t, []string{"/a", "/b"}, names(m.namespacesOfNode(context.Background(), node("w-2", nil))), "pods of all namespaces may go there")
	assert.Equal(t, []string{"/b"}, names(m.markersOfNode(context.Background(), node("w-2", nil))), "its marks are those of its own Machine's namespace")
}
