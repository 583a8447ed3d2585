package drain

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// watched is a store that a watch keeps up to date. Each change nudges those who look
// at it, so that they look at the whole state again: no event is ever counted on.
type watched struct {
	store  cache.Store
	synced <-chan struct{}
	// refused is closed, and refusal set before that, when the API server does not allow the watch: no retry would cure it.
	refused chan struct{}
	refusal error
}

// subject is what is watched.
type subject struct {
	what   string // for messages
	object runtime.Object
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	// keep makes of an object what is stored: without what no drain looks at. Optional.
	keep func(any) (any, error)
}

func startWatch(ctx context.Context, client kubernetes.Interface, s subject, nudge func()) *watched {
	w := &watched{refused: make(chan struct{})}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(w.reporting(s), client),
		ObjectType:    s.object,
		Transform:     s.keep,
		Indexers:      cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
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

// reporting lists and watches, and keeps a refusal by the API server.
func (w *watched) reporting(s subject) *cache.ListWatch {
	var once sync.Once
	report := func(err error) {
		if apierrors.IsForbidden(err) {
			once.Do(func() {
				w.refusal = fmt.Errorf("watching %s: %w", s.what, err)
				close(w.refused)
			})
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			out, err := s.list(ctx, o)
			report(err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			out, err := s.watch(ctx, o)
			report(err)
			return out, err
		},
	}
}

func podsOn(client kubernetes.Interface, node string) subject {
	onNode := fields.OneTermEqualSelector("spec.nodeName", node).String()
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return subject{
		what: "pods of node " + node, object: &corev1.Pod{}, keep: stripPod,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = onNode
			return pods.List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.FieldSelector = onNode
			return pods.Watch(ctx, o)
		},
	}
}

// stripPod keeps what decides how a pod leaves: most of a pod is its containers.
func stripPod(o any) (any, error) {
	if p, ok := o.(*corev1.Pod); ok {
		p.ManagedFields = nil
		p.Spec.Containers, p.Spec.InitContainers, p.Spec.EphemeralContainers = nil, nil, nil
		p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = nil, nil, nil
	}
	return o, nil
}

// signal nudges without ever waiting: one nudge that is pending stands for all.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
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
func listOf[T any](w *watched) []T { return typed[T](w.store.List()) }

// listIn is listOf for one namespace.
func listIn[T any](w *watched, namespace string) []T {
	indexed, ok := w.store.(cache.Indexer)
	if !ok {
		return nil
	}
	objects, err := indexed.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil { // there is such an index
		return nil
	}
	return typed[T](objects)
}

func typed[T any](objects []any) []T {
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
