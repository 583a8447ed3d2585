package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/refit-dev/refit/deploy"
)

func TestTheCoordinatorMayReachTheAPIServerWhereverItListens(t *testing.T) {
	port := int32(16443)
	meta := metav1.ObjectMeta{Name: "kubernetes", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}}
	kube := fake.NewClientset(
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&discoveryv1.EndpointSlice{ObjectMeta: meta, Ports: []discoveryv1.EndpointPort{{Port: &port}, {}}},
	)
	ports, err := APIPorts(t.Context(), kube)
	require.NoError(t, err)
	assert.Equal(t, []int64{443, 16443}, ports)

	objects, err := Load(deploy.Manifests)
	require.NoError(t, err)
	assert.Equal(t, []int64{16443}, AllowAPIPorts(objects, ports))
	assert.Empty(t, AllowAPIPorts(objects, ports), "once")
	policies := 0
	for _, o := range objects {
		if o.GetKind() == "NetworkPolicy" {
			policies++
			text, err := o.MarshalJSON()
			require.NoError(t, err)
			assert.Contains(t, string(text), `{"ports":[{"port":443,"protocol":"TCP"},{"port":6443,"protocol":"TCP"},{"port":16443,"protocol":"TCP"}]}`)
		}
	}
	assert.Equal(t, 1, policies)
}

func TestAnAPIServerThatHidesItsServiceIsSaid(t *testing.T) {
	_, err := APIPorts(t.Context(), fake.NewClientset())
	require.ErrorContains(t, err, "Service of the API server")
}
