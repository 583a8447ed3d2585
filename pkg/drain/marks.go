package drain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Marks are what a node says in our name for as long as something lasts.
type Marks struct {
	// Outdated: the node is still to be drained; pods go elsewhere where they can.
	Outdated bool
}

// MarksOf are the marks that the node carries.
func MarksOf(n *corev1.Node) Marks {
	return Marks{Outdated: slices.ContainsFunc(n.Spec.Taints, isOutdated)}
}

func isOutdated(t corev1.Taint) bool {
	return t.Key == v1alpha1.TaintOutdated && t.Effect == corev1.TaintEffectPreferNoSchedule
}

// On says that the node carries just these marks, as far as they are ours to write.
func (m Marks) On(n *corev1.Node) bool { return m.changes(n).none() }

// Mark makes the node carry these marks and no other one of ours, in one conditional
// write; what others have written stays.
func Mark(ctx context.Context, client kubernetes.Interface, node string, m Marks) error {
	if err := changeNode(ctx, client, node, m.changes); err != nil {
		return fmt.Errorf("marking node %s: %w", node, err)
	}
	return nil
}

func (m Marks) changes(n *corev1.Node) *marks {
	out := &marks{}
	if m.Outdated != MarksOf(n).Outdated {
		out.taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), isOutdated)
		if out.taints == nil {
			out.taints = []corev1.Taint{}
		}
		if m.Outdated {
			out.taints = append(out.taints, corev1.Taint{Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule})
		}
	}
	return out
}
