package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// StandBy leaves a node cordoned that the owner has cordoned, in the name of its machine's
// standby, and takes off whatever else it carries in the owner's name, in one conditional
// write. A cordon of someone else stays theirs, and what was taken back is left so.
func StandBy(ctx context.Context, client kubernetes.Interface, node, owner string) error {
	err := changeNode(ctx, client, node, func(n *corev1.Node) *marks {
		m := marksOf(n, owner)
		if n.Spec.Unschedulable && n.Annotations[v1alpha1.AnnotationCordonedBy] == owner {
			by := v1alpha1.CordonStandby
			m.unschedulable = nil
			m.annotate(v1alpha1.AnnotationCordonedBy, &by)
		}
		return m
	})
	if err != nil {
		return fmt.Errorf("leaving node %s on standby: %w", node, err)
	}
	return nil
}

// Clear takes off a node all that lasts beyond an operation: our marks, and the cordon of
// a standby. It says whether there was anything.
func Clear(ctx context.Context, client kubernetes.Interface, node string) (bool, error) {
	cleared := false
	err := changeNode(ctx, client, node, func(n *corev1.Node) *marks {
		m := remainders(n)
		cleared = !m.none()
		return m
	})
	if err != nil {
		return false, fmt.Errorf("clearing node %s: %w", node, err)
	}
	return cleared, nil
}

// Lasts says that the node carries something that Clear would take off.
func Lasts(n *corev1.Node) bool { return !remainders(n).none() }

func remainders(n *corev1.Node) *marks {
	m := Marks{}.changes(n)
	if by, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]; marked && by == v1alpha1.CordonStandby {
		m.cordon(nil)
	}
	return m
}
