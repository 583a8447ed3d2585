package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Cluster is what the drains of one cluster share, however many run at a time: one watch
// on budgets, one on VolumeAttachments while somebody waits for them, and the count of
// what each budget has left. It is safe for concurrent use.
type Cluster struct {
	client      kubernetes.Interface
	budgets     shared
	attachments shared
	rooms       rooms
	open        chan struct{} // a place for each eviction request that may be open at a time
	pace        pace
}

// maxOpen bounds the evictions that all drains together have open at a time. It takes
// the place of a limit per second, which would make every drain wait for all others.
const maxOpen = 64

// NewCluster makes a Cluster. It asks for nothing until a drain begins.
func NewCluster(client kubernetes.Interface) *Cluster {
	c := &Cluster{client: client, pace: defaultPace, open: make(chan struct{}, maxOpen)}
	c.budgets = shared{client: client, subject: budgetsOf(client)}
	c.attachments = shared{client: client, subject: attachmentsOf(client)}
	return c
}

// Drainer makes a Drainer of this cluster.
func (c *Cluster) Drainer(opts Options) *Drainer {
	return &Drainer{cluster: c, client: c.client, opts: opts.withDefaults(), pace: c.pace}
}

// evict asks for an eviction when there is a place for one more.
func (c *Cluster) evict(ctx context.Context, pod *corev1.Pod) error {
	select {
	case c.open <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.open }()
	return evict(ctx, c.client, pod)
}

// answered gives back what was charged; a disruption that was not used is another drain's to use.
func (c *Cluster) answered(budget types.UID, accepted bool) {
	c.rooms.answered(budget, accepted)
	if !accepted {
		c.budgets.nudge()
	}
}

func budgetsOf(client kubernetes.Interface) subject {
	budgets := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll)
	return subject{
		what: "poddisruptionbudgets", object: &policyv1.PodDisruptionBudget{}, keep: compile,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return budgets.List(ctx, o) },
		watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return budgets.Watch(ctx, o)
		},
	}
}

func attachmentsOf(client kubernetes.Interface) subject {
	attachments := client.StorageV1().VolumeAttachments()
	return subject{
		what: "volumeattachments.storage.k8s.io", object: &storagev1.VolumeAttachment{},
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return attachments.List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return attachments.Watch(ctx, o)
		},
	}
}
