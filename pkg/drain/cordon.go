package drain

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// CordonResult says whose cordon is on the node after Cordon.
type CordonResult struct {
	// Foreign: someone else cordoned the node. It is left as it is, never marked, and stays cordoned at the end.
	Foreign bool
	// AlreadyOurs: this owner had cordoned the node before.
	AlreadyOurs bool
	// Uncordoned: this owner had cordoned the node, and someone else has made it schedulable since. It is left so.
	Uncordoned bool
	// Previous is the earlier owner whose marker was taken over, if any.
	Previous string
}

// Cordon makes the node unschedulable and marks the cordon as the owner's, in one
// conditional write: a crash leaves both or neither. The owner is a grant's id. A cordon
// that someone else has taken back is not made again for the same owner.
func Cordon(ctx context.Context, client kubernetes.Interface, node, owner string) (CordonResult, error) {
	var out CordonResult
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %s: %w", node, err)
		}
		marker, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]
		out = CordonResult{
			Foreign:     n.Spec.Unschedulable && !marked,
			AlreadyOurs: n.Spec.Unschedulable && marked && marker == owner,
			Uncordoned:  !n.Spec.Unschedulable && marked && marker == owner,
		}
		if out.Foreign || out.AlreadyOurs || out.Uncordoned {
			return nil
		}
		if marked && marker != owner {
			out.Previous = marker
		}
		return patchCordon(ctx, client, n, &owner, true)
	})
	if err != nil {
		return CordonResult{}, fmt.Errorf("cordoning node %s: %w", node, err)
	}
	return out, nil
}

// Uncordon takes back the owner's cordon, marker and all, in one conditional write.
// A node that carries no marker, or another owner's, is left alone. Where a person
// has made the node schedulable meanwhile, only the marker goes.
func Uncordon(ctx context.Context, client kubernetes.Interface, node, owner string) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %s: %w", node, err)
		}
		if marker, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]; !marked || marker != owner {
			return nil
		}
		return patchCordon(ctx, client, n, nil, false)
	})
	if err != nil {
		return fmt.Errorf("uncordoning node %s: %w", node, err)
	}
	return nil
}

// Disown takes the owner's marker off a node that someone else has made schedulable,
// and says whether it did: from then on a cordon is whoever's that writes it.
func Disown(ctx context.Context, client kubernetes.Interface, node, owner string) (bool, error) {
	disowned := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		disowned = false
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %s: %w", node, err)
		}
		if n.Spec.Unschedulable || n.Annotations[v1alpha1.AnnotationCordonedBy] != owner {
			return nil
		}
		disowned = true
		return patchCordon(ctx, client, n, nil, false)
	})
	if err != nil {
		return false, fmt.Errorf("taking the marker off node %s: %w", node, err)
	}
	return disowned, nil
}

// patchCordon writes marker and cordon together, on condition that the node is
// still the one that was read. A nil owner removes the marker.
func patchCordon(ctx context.Context, client kubernetes.Interface, n *corev1.Node, owner *string, unschedulable bool) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             n.UID,
			"resourceVersion": n.ResourceVersion,
			"annotations":     map[string]*string{v1alpha1.AnnotationCordonedBy: owner},
		},
		"spec": map[string]any{"unschedulable": unschedulable},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "refit-coordinator"})
	if err != nil {
		return fmt.Errorf("writing cordon and marker: %w", err)
	}
	return nil
}
