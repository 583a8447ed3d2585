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
	// InFlight is the id of the grant under which the node is worked on, "" of none: the
	// cluster autoscaler is not to remove it meanwhile.
	InFlight string
}

// MarksOf are the marks that the node carries.
func MarksOf(n *corev1.Node) Marks {
	return Marks{
		Outdated: slices.ContainsFunc(n.Spec.Taints, isOutdated),
		InFlight: n.Annotations[v1alpha1.AnnotationScaleDownDisabledBy],
	}
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
	m.ride(n, out)
	return out
}

// ride adds to a write what makes the node carry these marks: the beginning and the end of
// an operation change its cordon and its marks in one.
func (m Marks) ride(n *corev1.Node, out *marks) {
	m.keep(n, out)
	if m.Outdated != MarksOf(n).Outdated {
		out.taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), isOutdated)
		if out.taints == nil {
			out.taints = []corev1.Taint{}
		}
		if m.Outdated {
			out.taints = append(out.taints, corev1.Taint{Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule})
		}
	}
}

// keep says to the cluster autoscaler that the node stays. What a person has said to it is
// left alone, and what a person has taken off is not written again under the same grant.
func (m Marks) keep(n *corev1.Node, out *marks) {
	said, there := n.Annotations[v1alpha1.AnnotationScaleDownDisabled]
	by, ours := n.Annotations[v1alpha1.AnnotationScaleDownDisabledBy]
	yes := "true"
	switch {
	case by == m.InFlight:
	case m.InFlight == "":
		out.annotate(v1alpha1.AnnotationScaleDownDisabledBy, nil)
		if said == yes {
			out.annotate(v1alpha1.AnnotationScaleDownDisabled, nil)
		}
	case ours || !there:
		out.annotate(v1alpha1.AnnotationScaleDownDisabledBy, &m.InFlight)
		out.annotate(v1alpha1.AnnotationScaleDownDisabled, &yes)
	}
}
