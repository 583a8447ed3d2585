package scenario

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// cordons records how often each node was cordoned under a grant.
type cordons struct {
	mu      sync.Mutex
	grants  map[string][]string // by node, in order
	stopped chan struct{}
}

func (e *Env) startCordons(ctx context.Context) (*cordons, error) {
	c := &cordons{grants: map[string][]string{}, stopped: make(chan struct{})}
	f := informers.NewSharedInformerFactory(e.Kube, 0)
	inf := f.Core().V1().Nodes().Informer()
	_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, now any) {
		if n, ok := now.(*corev1.Node); ok {
			c.see(n)
		}
	}})
	if err != nil {
		return nil, err
	}
	f.Start(c.stopped)
	cache.WaitForCacheSync(ctx.Done(), inf.HasSynced)
	return c, nil
}

func (c *cordons) see(n *corev1.Node) {
	by := n.Annotations[v1alpha1.AnnotationCordonedBy]
	if !n.Spec.Unschedulable || by == "" || by == v1alpha1.CordonStandby {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.grants[n.Name]
	if len(seen) == 0 || seen[len(seen)-1] != by {
		c.grants[n.Name] = append(seen, by)
	}
}

// Stop ends the watch and returns the grants under which each node was cordoned.
func (c *cordons) Stop() map[string][]string {
	close(c.stopped)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.grants
}
