package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const fieldManager = "kubectl-refit"

// cordon makes the node unschedulable, without any marker: it is the person's cordon, and
// kubectl uncordon takes it back. It is false where the node was cordoned before.
func cordon(ctx context.Context, kube kubernetes.Interface, node string) (bool, error) {
	changed, err := setUnschedulable(ctx, kube, node, true)
	if err != nil {
		return false, fmt.Errorf("cordoning node %s: %w", node, err)
	}
	return changed, nil
}

func uncordon(ctx context.Context, kube kubernetes.Interface, node string) error {
	if _, err := setUnschedulable(ctx, kube, node, false); err != nil {
		return fmt.Errorf("uncordoning node %s: %w", node, err)
	}
	return nil
}

// setUnschedulable decides on a fresh reading, and writes on condition that it still holds.
func setUnschedulable(ctx context.Context, kube kubernetes.Interface, node string, want bool) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading it: %w", err)
		}
		if changed = n.Spec.Unschedulable != want; !changed {
			return nil
		}
		return patch(ctx, kube, n, want)
	})
	return changed && err == nil, err //nolint:wrapcheck // each try says what it did
}

func patch(ctx context.Context, kube kubernetes.Interface, n *corev1.Node, unschedulable bool) error {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"unschedulable":%t}}`, n.UID, n.ResourceVersion, unschedulable)
	_, err := kube.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("writing it: %w", err)
	}
	return nil
}
