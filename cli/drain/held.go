package drain

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// held is a node from its cordon on, and what others do to it meanwhile.
type held struct {
	node string
	uid  types.UID
	// ours: this drain has cordoned it.
	ours bool
	// lost: it was seen schedulable since.
	lost atomic.Bool
	// gone is closed when it is deleted.
	gone chan struct{}
}

// hold follows the node, from the version of n on, until ctx is over. Where it may not be
// watched, what is read of it at the end has to do.
func hold(ctx context.Context, kube kubernetes.Interface, n *corev1.Node, ours bool) *held {
	h := &held{node: n.Name, uid: n.UID, ours: ours, gone: make(chan struct{})}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, n.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, n.Name).String()
			return kube.CoreV1().Nodes().Watch(ctx, opts) //nolint:wrapcheck // the watcher looks at its kind
		},
	})
	if err == nil {
		go h.follow(w.ResultChan())
	}
	return h
}

func (h *held) follow(events <-chan watch.Event) {
	for e := range events {
		n, ok := e.Object.(*corev1.Node)
		switch {
		case !ok || n.Name != h.node || n.UID != h.uid:
		case e.Type == watch.Deleted:
			close(h.gone)
			return
		case !n.Spec.Unschedulable:
			h.lost.Store(true)
		}
	}
}

// Gone is the error of a node that was deleted while it was drained.
type Gone struct{ Node string }

func (g Gone) Error() string {
	return fmt.Sprintf("the Node %s is gone: somebody has deleted it meanwhile", g.Node)
}
