package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PlaceFor says whether any node of the cluster takes pods of this one now.
func PlaceFor(ctx context.Context, nodes client.Reader, n *Node) (bool, error) {
	var list corev1.NodeList
	if err := nodes.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // it is only read
		return false, fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range list.Items {
		if NodeOf(&list.Items[i]).TakesPodsOf(n) {
			return true, nil
		}
	}
	return false, nil
}
