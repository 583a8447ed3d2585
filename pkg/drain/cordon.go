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

// LoadBalancers says what external load balancers are told of a cordoned node.
type LoadBalancers string

// A node is kept in load balancers where no other could take its part.
const (
	ExcludeFromLoadBalancers LoadBalancers = ""
	KeepInLoadBalancers      LoadBalancers = "Keep"
)

// CordonResult says whose cordon is on the node after Cordon.
type CordonResult struct {
	// Foreign: someone else cordoned the node. The cordon is left as it is, never marked as ours, and stays at the end.
	Foreign bool
	// AlreadyOurs: this owner had cordoned the node before.
	AlreadyOurs bool
	// Uncordoned: this owner had cordoned the node, or found it cordoned, and someone else has made it schedulable since. It is left so.
	Uncordoned bool
	// Previous is the earlier owner whose marker was taken over, if any.
	Previous string
	// Excluded: the node has left the external load balancers in this owner's name.
	Excluded bool
}

// Cordon makes the node unschedulable, takes it out of external load balancers if asked
// to, and marks each as the owner's, in one conditional write: a crash leaves all or
// nothing. The owner is a grant's id. What someone else has done is not marked as the
// owner's, only as found by it, and what someone else has taken back is not done again
// for the same owner.
func Cordon(ctx context.Context, client kubernetes.Interface, node, owner string, lb LoadBalancers) (CordonResult, error) {
	var out CordonResult
	err := changeNode(ctx, client, node, func(n *corev1.Node) *marks {
		marker, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]
		out = CordonResult{
			Foreign:     n.Spec.Unschedulable && !marked,
			AlreadyOurs: n.Spec.Unschedulable && marked && marker == owner,
			Uncordoned:  takenBack(n, owner),
		}
		if out.Uncordoned {
			return nil
		}
		m := &marks{}
		if !out.Foreign && !out.AlreadyOurs {
			if marked {
				out.Previous = marker
			}
			m.cordon(&owner)
			Marks{InFlight: owner}.ride(n, m)
		}
		switch found, was := n.Annotations[v1alpha1.AnnotationFoundCordonedBy]; {
		case out.Foreign && found != owner:
			m.annotate(v1alpha1.AnnotationFoundCordonedBy, &owner)
		case !out.Foreign && was: // it is ours by now
			m.annotate(v1alpha1.AnnotationFoundCordonedBy, nil)
		}
		if out.Excluded = excludable(n, owner, lb); out.Excluded && n.Annotations[v1alpha1.AnnotationExcludedBy] != owner {
			m.exclude(&owner)
		}
		return m
	})
	if err != nil {
		return CordonResult{}, fmt.Errorf("cordoning node %s: %w", node, err)
	}
	return out, nil
}

// takenBack says that the node is schedulable, though the owner has cordoned it or found it
// cordoned. The exclusion from load balancers tells too, since it is one write with the cordon:
// whoever takes the cordon back may have taken its marker with it.
func takenBack(n *corev1.Node, owner string) bool {
	a := n.Annotations
	return !n.Spec.Unschedulable && owner != "" &&
		(a[v1alpha1.AnnotationCordonedBy] == owner || a[v1alpha1.AnnotationFoundCordonedBy] == owner || a[v1alpha1.AnnotationExcludedBy] == owner)
}

// excludable says whether the node's exclusion from load balancers is the owner's, or may
// become it: not where the label is someone else's, nor where someone has taken ours off.
func excludable(n *corev1.Node, owner string, lb LoadBalancers) bool {
	_, labelled := n.Labels[corev1.LabelNodeExcludeBalancers]
	marker, marked := n.Annotations[v1alpha1.AnnotationExcludedBy]
	if marked && marker == owner {
		return labelled
	}
	return lb == ExcludeFromLoadBalancers && labelled == marked
}

// Uncordon gives the node back: it takes off the owner's cordon and its exclusion from
// load balancers, markers and all, in one conditional write. What carries no marker, or
// another owner's, is left alone. Where a person has taken one of them back meanwhile,
// only its marker goes.
func Uncordon(ctx context.Context, client kubernetes.Interface, node, owner string) error {
	err := changeNode(ctx, client, node, func(n *corev1.Node) *marks { return marksOf(n, owner) })
	if err != nil {
		return fmt.Errorf("uncordoning node %s: %w", node, err)
	}
	return nil
}

// Disown takes the owner's markers off a node that someone else has made schedulable,
// and says whether it did: from then on a cordon is whoever's that writes it. Our
// exclusion from load balancers goes too, since the node is to serve.
func Disown(ctx context.Context, client kubernetes.Interface, node, owner string) (bool, error) {
	disowned := false
	err := changeNode(ctx, client, node, func(n *corev1.Node) *marks {
		disowned = takenBack(n, owner)
		if !disowned {
			return nil
		}
		return marksOf(n, owner)
	})
	if err != nil {
		return false, fmt.Errorf("taking the marker off node %s: %w", node, err)
	}
	return disowned, nil
}

// marks are what one write changes of a node; nil values take a key off.
type marks struct {
	annotations   map[string]*string
	labels        map[string]*string
	unschedulable *bool
	taints        []corev1.Taint // all of them, nil to leave them as they are
}

func (m *marks) none() bool { return len(m.annotations) == 0 && m.taints == nil }

// marksOf takes off whatever the node carries in the owner's name.
func marksOf(n *corev1.Node, owner string) *marks {
	m := &marks{}
	if by, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]; marked && by == owner {
		m.cordon(nil)
	}
	if by, marked := n.Annotations[v1alpha1.AnnotationFoundCordonedBy]; marked && by == owner {
		m.annotate(v1alpha1.AnnotationFoundCordonedBy, nil)
	}
	if by, marked := n.Annotations[v1alpha1.AnnotationExcludedBy]; marked && by == owner {
		m.exclude(nil)
	}
	if owner != "" && MarksOf(n).InFlight == owner {
		Marks{}.keep(n, m)
	}
	return m
}

func (m *marks) cordon(owner *string) {
	unschedulable := owner != nil
	m.unschedulable = &unschedulable
	m.annotate(v1alpha1.AnnotationCordonedBy, owner)
}

func (m *marks) exclude(owner *string) {
	m.annotate(v1alpha1.AnnotationExcludedBy, owner)
	m.labels = map[string]*string{corev1.LabelNodeExcludeBalancers: nil}
	if owner != nil {
		m.labels[corev1.LabelNodeExcludeBalancers] = new(string) // its presence counts
	}
}

func (m *marks) annotate(key string, value *string) {
	if m.annotations == nil {
		m.annotations = map[string]*string{}
	}
	m.annotations[key] = value
}

// changeNode decides on a fresh reading and writes on condition that the node is still
// the one that was read, again and again until both hold.
func changeNode(ctx context.Context, client kubernetes.Interface, node string, decide func(*corev1.Node) *marks) error {
	//nolint:wrapcheck // each try says what it did
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %s: %w", node, err)
		}
		m := decide(n)
		if m == nil || m.none() {
			return nil
		}
		return patchNode(ctx, client, n, m)
	})
}

func patchNode(ctx context.Context, client kubernetes.Interface, n *corev1.Node, m *marks) error {
	metadata := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}
	if len(m.annotations) > 0 {
		metadata["annotations"] = m.annotations
	}
	if len(m.labels) > 0 {
		metadata["labels"] = m.labels
	}
	spec := map[string]any{}
	if m.unschedulable != nil {
		spec["unschedulable"] = *m.unschedulable
	}
	if m.taints != nil {
		spec["taints"] = m.taints
	}
	body := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "refit-coordinator"})
	if err != nil {
		return fmt.Errorf("writing cordon and markers: %w", err)
	}
	return nil
}
