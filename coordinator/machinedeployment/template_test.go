package machinedeployment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
)

func TestAPassWhoseTimeIsOverTriesNoOtherMachine(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tried := 0
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			tried++
			end()
			return ctx.Err()
		},
	})
	f := New().Deployment("w").Machine("w1", "w", v1alpha1.RoleWorker).Machine("w2", "w", v1alpha1.RoleWorker).Machine("w3", "w", v1alpha1.RoleWorker).Build()
	r := &Reconciler{Client: c, Board: &board.Board{}}
	pool := f.Pools["w"]
	err := r.applyTemplate(ctx, &scope{deployment: pool.Deployment.DeepCopy(), pool: pool})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, tried, "each would fail, and each would be told")
}
