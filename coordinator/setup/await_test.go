package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestAnAPIServerThatHasJustStartedIsWaitedForUntilItServesAllKinds(t *testing.T) {
	client := fake.NewClientset()
	require.ErrorContains(t, serves(client.Discovery()), "machines of refit.dev/v1alpha1 are not served yet")
	of := func(names ...string) {
		list := &metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion.String()}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		client.Resources = []*metav1.APIResourceList{list}
	}
	of("machines", "machinedeployments", "ledgers")
	require.ErrorContains(t, serves(client.Discovery()), "machinedisruptionbudgets of refit.dev/v1alpha1 are not served yet")
	of("machines", "machinedeployments", "ledgers", "machinedisruptionbudgets")
	assert.NoError(t, serves(client.Discovery()))
}
