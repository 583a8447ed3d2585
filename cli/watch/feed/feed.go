// Package feed watches a namespace for the live view: one watch for each kind, and nothing is asked again and again.
package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/watch"
	"github.com/refit-dev/refit/pkg/outage"
)

// Feed collects changes until somebody takes them.
type Feed struct {
	mu       sync.Mutex
	changes  []watch.Change
	troubles map[string]string
	unsynced int
	news     chan struct{}
}

// kind is one kind that is watched.
type kind struct {
	name   string
	object client.Object
	list   func() client.ObjectList
}

// The order matters only for how soon a machine is shown in its pool.
var kinds = []kind{
	{"MachineDeployments", &v1alpha1.MachineDeployment{}, func() client.ObjectList { return &v1alpha1.MachineDeploymentList{} }},
	{"Ledgers", &v1alpha1.Ledger{}, func() client.ObjectList { return &v1alpha1.LedgerList{} }},
	{"Machines", &v1alpha1.Machine{}, func() client.ObjectList { return &v1alpha1.MachineList{} }},
	{"Events", &corev1.Event{}, func() client.ObjectList { return &corev1.EventList{} }},
}

// Start watches until the context ends.
func Start(ctx context.Context, cl client.WithWatch, namespace string) (*Feed, error) {
	f := &Feed{troubles: map[string]string{}, unsynced: len(kinds), news: make(chan struct{}, 1)}
	for _, k := range kinds {
		informer := cache.NewSharedInformer(f.watches(cl, namespace, k), k.object, 0)
		if err := informer.SetTransform(slim); err != nil {
			return nil, fmt.Errorf("setting up the watch of %s: %w", k.name, err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { f.trouble(k.name, err) }); err != nil {
			return nil, fmt.Errorf("setting up the watch of %s: %w", k.name, err)
		}
		registration, err := informer.AddEventHandler(f.handler())
		if err != nil {
			return nil, fmt.Errorf("setting up the watch of %s: %w", k.name, err)
		}
		go informer.RunWithContext(ctx)
		go f.await(ctx, registration, k.name)
	}
	return f, nil
}

// watches lists and watches a kind, and notices when it works again.
func (f *Feed) watches(cl client.WithWatch, namespace string, k kind) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := k.list()
			err := cl.List(ctx, list, &client.ListOptions{Namespace: namespace, Raw: &o, Limit: o.Limit, Continue: o.Continue})
			return list, err //nolint:wrapcheck // the reflector tells kinds of errors apart
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := cl.Watch(ctx, k.list(), &client.ListOptions{Namespace: namespace, Raw: &o})
			if err == nil {
				f.note(func() { delete(f.troubles, k.name) })
			}
			return w, err //nolint:wrapcheck // the reflector tells kinds of errors apart
		},
	}
}

// slim leaves out what nobody is shown, and what is most of a large namespace.
func slim(o any) (any, error) {
	if accessor, err := meta.Accessor(o); err == nil {
		accessor.SetManagedFields(nil)
	}
	return o, nil
}

func (f *Feed) handler() cache.ResourceEventHandlerDetailedFuncs {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, first bool) { f.add(o, false, first) },
		UpdateFunc: func(_, o any) { f.add(o, false, false) },
		DeleteFunc: func(o any) { f.add(o, true, false) },
	}
}

func (f *Feed) add(o any, deleted, first bool) {
	if gone, is := o.(cache.DeletedFinalStateUnknown); is {
		o = gone.Obj
	}
	if object, is := o.(client.Object); is {
		f.note(func() { f.changes = append(f.changes, watch.Change{Object: object, Deleted: deleted, First: first}) })
	}
}

// await counts a kind as read. One that may not be read holds nobody up.
func (f *Feed) await(ctx context.Context, r cache.ResourceEventHandlerRegistration, name string) {
	if cache.WaitForCacheSync(ctx.Done(), func() bool { return r.HasSynced() || f.forbidden(name) }) {
		f.note(func() { f.unsynced-- })
	}
}

func (f *Feed) forbidden(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return name == "Events" && f.troubles[name] != ""
}

func (f *Feed) trouble(name string, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the reflector lists anew
	}
	text := fmt.Sprintf("%s cannot be watched: %v", name, err)
	if told, away := outage.Told(err); away {
		text = told + "; what is shown is from before"
	}
	f.note(func() { f.troubles[name] = text })
}

// note changes what is collected, and says that there is something.
func (f *Feed) note(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Next waits for news and takes them; false when the context has ended.
func (f *Feed) Next(ctx context.Context) (watch.Batch, bool) {
	select {
	case <-ctx.Done():
		return watch.Batch{}, false
	case <-f.news:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := watch.Batch{Changes: f.changes, Now: time.Now(), Synced: f.unsynced == 0}
	f.changes = nil
	b.Trouble = strings.Join(slices.Compact(slices.Sorted(maps.Values(f.troubles))), "; ")
	return b, true
}
