package scenario

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Deletions records pods that went away, and whether they were evicted. It reads
// what the API server itself marks on an evicted pod.
type Deletions struct {
	mu      sync.Mutex
	gone    []Gone
	stopped chan struct{}
}

// Gone is one pod that went away.
type Gone struct {
	Namespace, Name, Node string
	Evicted               bool
	Time                  time.Time
}

// StartDeletions watches the pods of a namespace until Stop.
func (e *Env) StartDeletions(ctx context.Context, namespace string) (*Deletions, error) {
	d := &Deletions{stopped: make(chan struct{})}
	f := informers.NewSharedInformerFactoryWithOptions(e.Kube, 0, informers.WithNamespace(namespace))
	inf := f.Core().V1().Pods().Informer()
	if _, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: d.add}); err != nil {
		return nil, err
	}
	f.Start(d.stopped)
	cache.WaitForCacheSync(ctx.Done(), inf.HasSynced)
	return d, nil
}

func (d *Deletions) add(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	g := Gone{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Time: time.Now()}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "EvictionByEvictionAPI" {
			g.Evicted = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = append(d.gone, g)
}

// Stop ends the watch and returns the pods that went away.
func (d *Deletions) Stop() []Gone {
	close(d.stopped)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}
