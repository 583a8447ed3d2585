package drain

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// guard is a budget with its selector read.
type guard struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// compile makes of a budget what is kept of it. A selector that cannot be read matches nothing.
func compile(o any) (any, error) {
	b, ok := o.(*policyv1.PodDisruptionBudget)
	if !ok {
		return o, nil
	}
	b.ManagedFields = nil
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return &guard{b, selector}, nil
}

// matching returns the budgets that the API server would find for a pod, by name.
func matching(pod *corev1.Pod, all *watched) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, g := range listIn[*guard](all, pod.Namespace) {
		if g.selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, g.PodDisruptionBudget)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func version(b *policyv1.PodDisruptionBudget) string {
	return string(b.UID) + "/" + b.ResourceVersion
}

func namesOf(budgets []*policyv1.PodDisruptionBudget) []string {
	var names []string
	for _, b := range budgets {
		names = append(names, b.Name)
	}
	return names
}

// guarded says whether budgets apply to the pod at all: the API server ignores them
// for pods that have not started, have finished or are leaving.
func guarded(pod *corev1.Pod) bool {
	return !finished(pod) && pod.Status.Phase != corev1.PodPending && pod.DeletionTimestamp == nil
}

// allows says whether the API server would let the pod go under the budget as it is now.
func allows(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if !ready(pod) && letsUnreadyGo(b) {
		return true
	}
	return b.Status.ObservedGeneration >= b.Generation && b.Status.DisruptionsAllowed > 0
}

// letsUnreadyGo: the API server lets a pod that is not ready go without taking anything from the
// budget, and for that does not ask which version of it the disruption controller has looked at.
func letsUnreadyGo(b *policyv1.PodDisruptionBudget) bool {
	return alwaysAllowsUnhealthy(b) || (b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0)
}

func alwaysAllowsUnhealthy(b *policyv1.PodDisruptionBudget) bool {
	policy := b.Spec.UnhealthyPodEvictionPolicy
	return policy != nil && *policy == policyv1.AlwaysAllow
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// explain says why a budget allows no disruption and whether that can clear by itself.
func explain(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) string {
	s := b.Status
	state := fmt.Sprintf("budget %s allows %d disruptions (%d healthy, %d needed, %d expected)", b.Name, s.DisruptionsAllowed, s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods)
	switch fault := syncFault(b); {
	case fault != "":
		state += ": the disruption controller cannot work it out (" + fault + "); change what its selector matches, or delete it"
	case s.ObservedGeneration < b.Generation:
		return state + ": the disruption controller has not seen its latest change yet"
	case never(b):
		state += ": it can never allow one; " + whatOpens(pod)
	case !ready(pod):
		return state + ": pods of it, this one among them, are not ready; repair the application, or set unhealthyPodEvictionPolicy: AlwaysAllow on the budget, which lets such pods go"
	default:
		return state + ": it clears when other pods become ready"
	}
	if !ready(pod) {
		state += "; this pod is not ready: with unhealthyPodEvictionPolicy: AlwaysAllow the budget lets such a pod go"
	}
	if how := hope(b, pod); how != "" && never(b) {
		state += "; but " + how
	}
	return state
}

// whatOpens is what a person may do about a budget that never allows to evict the pod.
func whatOpens(pod *corev1.Pod) string {
	if metav1.GetControllerOf(pod) == nil {
		return "nothing makes another pod in place of this one, so delete it, or let the budget allow one"
	}
	return "add replicas, or let it allow one"
}

// syncFault is why the disruption controller cannot work the budget out, "" where it can. It
// then allows nothing, and does not note which version it has looked at.
func syncFault(b *policyv1.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason != policyv1.SyncFailedReason {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// never says that the budget rules out every disruption, however healthy the pods are.
func never(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	if s.DisruptionsAllowed == 0 && syncFault(b) != "" {
		return true
	}
	return s.ObservedGeneration >= b.Generation && s.DisruptionsAllowed == 0 && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods
}

func overlapMessage(budgets []*policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("budgets %s both match it, and the API server never evicts such a pod: change one of their selectors", strings.Join(namesOf(budgets), " and "))
}
