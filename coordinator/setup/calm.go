package setup

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// calm is how long news are gathered before a whole fleet is looked at again to word or to
// mark it: nothing is decided by that, and in a large rollout something changes all the time.
const calm = 500 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// calmly enqueues what an object maps to a moment later, once for all that comes meanwhile.
func calmly(to handler.MapFunc) handler.EventHandler { return after(calm, to) }

func after(gathered time.Duration, to handler.MapFunc) handler.EventHandler {
	enqueue := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, o := range objects {
			for _, r := range to(ctx, o) {
				q.AddAfter(r, gathered)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, q, e.Object) },
	}
}
