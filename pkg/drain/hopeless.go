package drain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// explainHeld keeps up to date what is said of the pods that budgets hold, and since
// when there is no hope for them.
func (r *run) explainHeld() {
	for _, e := range r.ordered() {
		switch {
		case (e.comesBack || e.vainForGood) && e.state == stateBlocked:
			if e.hopelessSince.IsZero() {
				e.hopelessSince = time.Now()
			}
			continue
		case e.heldByBudget():
			if reason, message := r.heldBy(e); message != "" {
				r.block(e, reason, message)
			}
		case e.state != stateEvicting: // a request under way leaves open what the budget says
			e.hopelessSince = time.Time{}
			continue
		}
		if !hopeless(e.pod, matching(e.pod, r.budgets)) {
			e.hopelessSince = time.Time{}
		} else if e.hopelessSince.IsZero() {
			e.hopelessSince = time.Now()
		}
	}
}

// hopeless says that nothing but a person's change of budget, replicas or pod lets the pod go.
func hopeless(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	if len(budgets) != 1 || !guarded(pod) || !never(budgets[0]) {
		return false
	}
	if allows(budgets[0], pod) { // it is not ready, and may go for that
		return false
	}
	return hope(budgets[0], pod) == ""
}

// hope is how the pod may come to leave although its budget never lets it, "" where it cannot.
// A budget or a pod that belongs to an operator is no lost case: many of them keep a budget
// closed on purpose and move their pod, or open the budget, once the node is cordoned. Nor is
// a pod that ends by itself. A budget that the disruption controller cannot work out is closed
// for a fault, not on purpose, whoever has the pod.
func hope(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) string {
	if by := metav1.GetControllerOf(b); by != nil {
		return fmt.Sprintf("the budget is that of %s %s, which may open it once the node is cordoned", by.Kind, by.Name)
	}
	if endsByItself(pod) {
		return "the pod has work that ends by itself, and then leaves"
	}
	if stays(pod) || syncFault(b) != "" {
		return ""
	}
	owner := metav1.GetControllerOf(pod)
	return fmt.Sprintf("the pod is that of %s %s, which may move it once the node is cordoned", owner.Kind, owner.Name)
}

// endsByItself says that the pod has work that comes to an end.
func endsByItself(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	}
	return owner.Kind == "Job"
}

// stays says that the pod is left where it is until something makes it go: by its controller, or since it has none.
func stays(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return !endsByItself(pod)
	}
	return slices.Contains(lasting, owner.APIVersion+" "+owner.Kind)
}

// lasting are the controllers whose pods stay until something makes them go.
var lasting = []string{"apps/v1 ReplicaSet", "apps/v1 StatefulSet", "v1 ReplicationController"}

// hopelessAt is when the drain ends because of the pod; zero when it does not.
func (r *run) hopelessAt(e *entry) time.Time {
	if e.hopelessSince.IsZero() || r.opts.OnTimeout != ActionFail {
		return time.Time{}
	}
	return e.hopelessSince.Add(r.pace.hopeless)
}

// giveUp ends a drain that time does not help, long before its deadline. It takes a
// while to do so: a controller that makes another replica, scales an application out or
// answers the cordon has long done it by then.
func (r *run) giveUp() error {
	var pods []BlockedPod
	for _, e := range r.ordered() {
		if at := r.hopelessAt(e); !at.IsZero() && !time.Now().Before(at) {
			pods = append(pods, e.blocked(namesOf(matching(e.pod, r.budgets))))
		}
	}
	if len(pods) == 0 {
		return r.lost()
	}
	b := r.stillThere("to wait longer does not help", pods)
	b.Permanent = true
	return b
}
