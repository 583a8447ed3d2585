package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

const fieldManager = "kubectl-refit"

// cordon makes the node unschedulable, without any marker: it is the person's cordon, and
// kubectl uncordon takes it back. It returns the node as it then is, and false where it
// was cordoned before.
func cordon(ctx context.Context, kube kubernetes.Interface, node string) (n *corev1.Node, changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		if n, err = kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading it: %w", err)
		}
		if changed = !n.Spec.Unschedulable; changed {
			n, err = patch(ctx, kube, n, true)
		}
		return err
	})
	if apierrors.IsForbidden(err) {
		return nil, false, &drain.Blocked{
			Reason: drain.ReasonMissingPermission, Permanent: true,
			Message: fmt.Sprintf("cordoning node %s: %v: grant get and patch on nodes", node, err),
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("cordoning node %s: %w", node, err)
	}
	return n, changed, nil
}

// giveBack takes our cordon off and nobody else's: it decides on a fresh reading, and
// writes on condition that it still holds, until ctx ends. It returns what has become of the node.
func (h *held) giveBack(ctx context.Context, kube kubernetes.Interface, keep bool) (how string, err error) {
	err = drain.Persist(ctx, func() error {
		n, err := kube.CoreV1().Nodes().Get(ctx, h.node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			how = "it is gone: somebody has deleted the Node"
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading it: %w", err)
		}
		if how = h.notOurs(n); how != "" {
			return nil
		}
		if keep {
			how = "it stays cordoned, as --keep-cordon asks"
			return nil
		}
		how = "uncordoned: it takes pods again"
		_, err = patch(ctx, kube, n, false)
		return err
	})
	return how, err //nolint:wrapcheck // each try says what it did
}

// notOurs says why there is no cordon of ours to take off the node, "" where there is one.
func (h *held) notOurs(n *corev1.Node) string {
	by, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]
	switch {
	case n.UID != h.uid:
		return "it is another Node of that name by now, and is left alone"
	case !n.Spec.Unschedulable:
		return "it is not cordoned any more: somebody else has uncordoned it, and it takes pods"
	case marked:
		return fmt.Sprintf("it stays cordoned: the cordon is Refit's by now (grant %s)", by)
	case !h.ours:
		return "it stays cordoned, as it was before"
	case h.lost.Load():
		return "it stays cordoned: somebody has uncordoned it meanwhile and somebody has cordoned it since, not this drain"
	}
	return ""
}

// stays says what keeps pods from a drained node, as it is read, and whether anything does.
func (h *held) stays(ctx context.Context, kube kubernetes.Interface) (string, bool) {
	n, err := kube.CoreV1().Nodes().Get(ctx, h.node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "it is gone: somebody has deleted the Node", true
	case err != nil:
		return fmt.Sprintf("whether it is still cordoned could not be read: %v", err), false
	case !n.Spec.Unschedulable:
		return fmt.Sprintf("but somebody has uncordoned it meanwhile, and it takes pods: kubectl cordon %s keeps them away", h.node), false
	}
	if by, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]; marked {
		return fmt.Sprintf("the cordon is Refit's (grant %s)", by), true
	}
	if h.lost.Load() {
		return fmt.Sprintf("but somebody has uncordoned it meanwhile, and pods may have come; it is cordoned again, until kubectl uncordon %s", h.node), false
	}
	return fmt.Sprintf("it stays cordoned until kubectl uncordon %s", h.node), true
}

func patch(ctx context.Context, kube kubernetes.Interface, n *corev1.Node, unschedulable bool) (*corev1.Node, error) {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"unschedulable":%t}}`, n.UID, n.ResourceVersion, unschedulable)
	out, err := kube.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("writing it: %w", err)
	}
	return out, nil
}
