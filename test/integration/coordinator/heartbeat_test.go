package coordinator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
)

// Under the Roles and policies as they are shipped.
func TestTheAgentOfAHostWithoutANodeRenewsItsLeaseAndNoOther(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"etcd1", "etcd2"} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleEtcd}
		require.NoError(t, w.admin.Create(context.Background(), m))
	}
	w.start()
	agent := w.server.As(t, "system:serviceaccount:"+namespace+":refit-machine-etcd1", "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	own, err := watch.NewClient(agent, namespace, "etcd1")
	require.NoError(t, err)
	other, err := watch.NewClient(agent, namespace, "etcd2")
	require.NoError(t, err)
	renewed := time.Now().Truncate(time.Microsecond)
	w.until("the coordinator has made the Lease and the Role", func() bool { return own.Renew(context.Background(), renewed) == nil })
	lease := func(name string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		_ = w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "refit-machine-" + name}, l)
		return l
	}
	require.NotNil(t, lease("etcd1").Spec.RenewTime)
	assert.True(t, renewed.Equal(lease("etcd1").Spec.RenewTime.Time))
	assert.Equal(t, "etcd1", lease("etcd1").OwnerReferences[0].Name)
	w.until("the Lease of the other is there, too", func() bool { return lease("etcd2").Name != "" })
	assert.True(t, apierrors.IsForbidden(other.Renew(context.Background(), renewed)), "it is not this host's")
	assert.Nil(t, lease("etcd2").Spec.RenewTime)
}
