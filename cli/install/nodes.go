package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/pkg/drain"
)

// ClearNodes takes off the Nodes what Refit has written on them, once no coordinator is
// there to write it again. What others have written stays.
func ClearNodes(ctx context.Context, kube kubernetes.Interface, say func(format string, args ...any)) error {
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Nodes, to take off them what Refit has written: %w", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if !drain.Lasts(n) {
			continue
		}
		cleared, err := drain.Clear(ctx, kube, n.Name)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("taking off Node %s what Refit has written: %w", n.Name, err)
		case cleared:
			say("Node %s: Refit's marks taken off", n.Name)
		}
	}
	return nil
}
