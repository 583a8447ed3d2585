package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// neighbour is a pod of the node that is to leave. Going: its eviction is under way or accepted. Gone: it is accepted.
type neighbour struct {
	*corev1.Pod
	going, gone bool
}

// vain is why a pod that nothing makes anew is not evicted although its budget would let it
// go, "" where it is: the budget would then hold others of this node for good. Lasting says
// that it can never let all of them go; else this one goes after the others.
func vain(b *policyv1.PodDisruptionBudget, pod *corev1.Pod, here []neighbour) (why string, lasting bool) {
	if !countsUnmanaged(b) || !lostWhenEvicted(b, pod) || never(b) && !allows(b, pod) {
		return "", false
	}
	lost, leaving, alone, replaced := weigh(b, here)
	s := b.Status
	switch {
	case alone && s.DesiredHealthy > s.ExpectedPods-lost:
		return fmt.Sprintf("budget %s needs %d of %d pods, and nothing makes others in place of %d on this node: it can never let all of them go, "+
			"and so none of them is evicted; delete them, or let the budget allow more", b.Name, s.DesiredHealthy, s.ExpectedPods, lost), true
	case replaced && s.DesiredHealthy >= s.ExpectedPods-leaving-1:
		return fmt.Sprintf("nothing makes another pod in place of this one, and without it budget %s would let no other of this node go: "+
			"it is evicted after them", b.Name), false
	}
	return "", false
}

// weigh counts the pods of a budget that nothing makes anew: all, and those whose eviction is under way; and says whether
// one of them, or one that is replaced, has still to ask the budget.
func weigh(b *policyv1.PodDisruptionBudget, here []neighbour) (lost, leaving int32, alone, replaced bool) {
	for _, p := range here {
		asks := !p.gone && hope(b, p.Pod) == "" && (ready(p.Pod) || !alwaysAllowsUnhealthy(b))
		switch {
		case metav1.GetControllerOf(p) != nil:
			replaced = replaced || asks
		case p.gone || lostWhenEvicted(b, p.Pod):
			lost, alone = lost+1, alone || asks
			if p.going {
				leaving++
			}
		}
	}
	return lost, leaving, alone, replaced
}

// lostWhenEvicted: nothing makes another pod in place of this one, and nothing else is to be hoped for.
func lostWhenEvicted(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return metav1.GetControllerOf(pod) == nil && hope(b, pod) == ""
}

// countsUnmanaged says that the pods which the budget expects are those that there are. One with
// maxUnavailable or a percentage expects what the controllers of its pods are asked for.
func countsUnmanaged(b *policyv1.PodDisruptionBudget) bool {
	if b.Status.ObservedGeneration < b.Generation || syncFault(b) != "" || b.Spec.MaxUnavailable != nil {
		return false
	}
	return b.Spec.MinAvailable == nil || b.Spec.MinAvailable.Type == intstr.Int
}

// holdVain keeps back what would be evicted in vain, and lets go what is not any more. Another
// policy for the timeout than Fail goes on whatever is left.
func (r *run) holdVain() {
	if r.opts.OnTimeout != ActionFail {
		return
	}
	here := r.byBudget()
	for _, e := range r.ordered() {
		if e.comesBack || e.refused || e.state == stateLeaving || e.state == stateEvicting {
			continue
		}
		why := ""
		if b := r.onlyBudget(e); b != nil {
			why, e.vainForGood = vain(b, e.pod, here[b])
		}
		switch {
		case why != "":
			e.vain, e.next = true, time.Time{}
			r.block(e, ReasonEvictionBlocked, why)
		case e.vain:
			e.vain, e.vainForGood = false, false
			e.queue()
		}
	}
}

// byBudget are the pods of this node that have to leave, under the one budget of each.
func (r *run) byBudget() map[*policyv1.PodDisruptionBudget][]neighbour {
	out := map[*policyv1.PodDisruptionBudget][]neighbour{}
	for _, e := range r.entries {
		budgets := matching(e.pod, r.budgets)
		if len(budgets) != 1 || e.refused || e.pod.Status.Phase == corev1.PodPending {
			continue
		}
		gone := e.state == stateLeaving
		out[budgets[0]] = append(out[budgets[0]], neighbour{e.pod, gone || e.state == stateEvicting, gone})
	}
	return out
}
