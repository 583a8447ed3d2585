package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// watched is a store that a watch keeps up to date. Each change nudges wake, so
// that the drain looks at the whole state again: no event is ever counted on.
type watched struct {
	store  cache.Store
	synced <-chan struct{}
	// denied delivers a refusal by the API server, which no retry would cure.
	denied chan error
}

func startWatch(ctx context.Context, client kubernetes.Interface, what string, object runtime.Object, lw *cache.ListWatch, wake chan<- struct{}) *watched {
	w := &watched{denied: make(chan error, 1)}
	nudge := func() {
		select {
		case wake <- struct{}{}:
		default: // one is pending already
		}
	}
	report := func(err error) {
		if apierrors.IsForbidden(err) {
			select {
			case w.denied <- fmt.Errorf("watching %s: %w", what, err):
			default:
			}
		}
	}
	list, watch := lw.ListWithContextFunc, lw.WatchFuncWithContext
	reporting := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			out, err := list(ctx, o)
			report(err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			out, err := watch(ctx, o)
			report(err)
			return out, err
		},
	}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(reporting, client),
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { nudge() },
			UpdateFunc: func(any, any) { nudge() },
			DeleteFunc: func(any) { nudge() },
		},
	})
	w.store, w.synced = store, controller.HasSyncedChecker().Done()
	go controller.RunWithContext(ctx)
	go func() { // an empty list makes no event
		select {
		case <-w.synced:
			nudge()
		case <-ctx.Done():
		}
	}()
	return w
}

func watchPods(ctx context.Context, client kubernetes.Interface, node string, wake chan<- struct{}) *watched {
	onNode := fields.OneTermEqualSelector("spec.nodeName", node).String()
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return startWatch(ctx, client, "pods of node "+node, &corev1.Pod{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = onNode
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.FieldSelector = onNode
			return pods.Watch(ctx, o)
		},
	}, wake)
}

func watchBudgets(ctx context.Context, client kubernetes.Interface, wake chan<- struct{}) *watched {
	budgets := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll)
	return startWatch(ctx, client, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return budgets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return budgets.Watch(ctx, o)
		},
	}, wake)
}

func (w *watched) hasSynced() bool {
	select {
	case <-w.synced:
		return true
	default:
		return false
	}
}

// listOf returns the store's objects of one type.
func listOf[T any](w *watched) []T {
	objects := w.store.List()
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
