package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Rules are what is allowed to whom.
type Rules struct {
	// Drainers are the users whose requests are judged.
	Drainers []string
	// MayDelete are the namespaces whose drains have the policy Delete.
	MayDelete []string
}

// Verdict is what the log shows of the drainers.
type Verdict struct {
	// Evictions that were accepted, and how many of them took a Ready pod out of a budget.
	Evictions, Charged int
	// Refused evictions, and how many of them a budget has refused.
	Refused, RefusedByBudget int
	// Deleted pods, by policy.
	Deleted int
	// Violations of what a drain may do.
	Violations []string
}

// Judge goes through the log. For each accepted eviction of a Ready pod with a budget
// it looks for the write by which the API server took it out of the budget, and for what
// the budget allowed before that write.
func (l Log) Judge(rules Rules) Verdict {
	j := &judge{rules: rules, pods: map[string]*corev1.Pod{}, budgets: l.budgets()}
	for i := range l {
		if l[i].Stage == "ResponseComplete" && l[i].Succeeded() {
			j.podChanged(&l[i])
		}
		if l[i].Stage == "ResponseComplete" && slices.Contains(rules.Drainers, l[i].Who()) {
			j.look(&l[i])
		}
	}
	return j.verdict
}

// Uncharged is the log as if the API server had taken no pod out of any budget: what the
// judge finds in it shows that it would find an eviction that no budget was asked for.
func (l Log) Uncharged() Log {
	return l.where(func(e *Event) bool {
		return e.User.Username != apiServer || e.ObjectRef.Resource != "poddisruptionbudgets"
	})
}

// apiServer is who writes the budgets of evicted pods.
const apiServer = "system:apiserver"

type judge struct {
	rules   Rules
	pods    map[string]*corev1.Pod // by namespace and name, as of the event at hand
	budgets map[string][]written   // by namespace and name, in the order of their versions
	verdict Verdict
}

// written is one version of a budget, and the request that wrote it.
type written struct {
	*policyv1.PodDisruptionBudget
	by *Event
}

// podChanged keeps what the pods are: before an eviction is judged by the pod that it names.
func (j *judge) podChanged(e *Event) {
	if e.ObjectRef.Resource != "pods" || (e.ObjectRef.Subresource != "" && e.ObjectRef.Subresource != "status") {
		return
	}
	pod := &corev1.Pod{}
	if json.Unmarshal(e.ResponseObject, pod) == nil && pod.UID != "" {
		j.pods[pod.Namespace+"/"+pod.Name] = pod
	}
}

func (j *judge) look(e *Event) {
	name := e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
	switch {
	case e.ObjectRef.Resource == "poddisruptionbudgets" && e.Verb != "get" && e.Verb != "list" && e.Verb != "watch":
		j.violation("%s asked to %s budget %s", e.Who(), e.Verb, name)
	case e.ObjectRef.Resource != "pods":
	case e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && !e.Succeeded():
		j.verdict.Refused++
		if refusedByBudget(e) {
			j.verdict.RefusedByBudget++
		}
	case e.Verb == "create" && e.ObjectRef.Subresource == "eviction":
		j.verdict.Evictions++
		j.evicted(e, name)
	case (e.Verb == "delete" || e.Verb == "deletecollection") && e.Succeeded():
		j.verdict.Deleted++
		if !slices.Contains(j.rules.MayDelete, e.ObjectRef.Namespace) {
			j.violation("%s deleted pod %s without the policy", e.Who(), name)
		}
	}
}

// refusedByBudget reads the cause of a refusal, as a drain does.
func refusedByBudget(e *Event) bool {
	status := &metav1.Status{}
	return json.Unmarshal(e.ResponseObject, status) == nil &&
		apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: *status}, policyv1.DisruptionBudgetCause)
}

func (j *judge) evicted(e *Event, name string) {
	pod := j.pods[name]
	if pod == nil {
		j.violation("pod %s was evicted, and the log does not know it", name)
		return
	}
	if !isReady(pod) || pod.DeletionTimestamp != nil {
		return
	}
	for key, versions := range j.budgets {
		if !covers(versions, pod, e) {
			continue
		}
		j.verdict.Charged++
		before := chargeFor(versions, pod.Name, e)
		switch {
		case before == nil:
			j.violation("Ready pod %s was evicted without being taken out of budget %s", name, key)
		case before.Status.DisruptionsAllowed < 1:
			j.violation("Ready pod %s was evicted while budget %s allowed %d", name, key, before.Status.DisruptionsAllowed)
		}
	}
}

// chargeFor is the budget before the write, made during the eviction, that took the pod out of it.
func chargeFor(versions []written, pod string, e *Event) *policyv1.PodDisruptionBudget {
	for i, v := range versions {
		if _, disrupted := v.Status.DisruptedPods[pod]; !disrupted || i == 0 {
			continue
		}
		if v.by.User.Username == apiServer && !v.by.Received.Before(e.Received) && !v.by.At.After(e.At) {
			return versions[i-1].PodDisruptionBudget
		}
	}
	return nil
}

// covers says whether the budget, as it was when the eviction came in, selects the pod.
func covers(versions []written, pod *corev1.Pod, e *Event) bool {
	var latest *policyv1.PodDisruptionBudget
	for _, v := range versions {
		if v.by.At.Before(e.Received) {
			latest = v.PodDisruptionBudget
			if v.by.Verb == "delete" || v.by.Verb == "deletecollection" {
				latest = nil
			}
		}
	}
	if latest == nil || latest.Namespace != pod.Namespace {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(latest.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// budgets are all versions of all budgets that the log knows.
func (l Log) budgets() map[string][]written {
	out := map[string][]written{}
	for i := range l {
		e := &l[i]
		if e.ObjectRef.Resource != "poddisruptionbudgets" || e.Stage != "ResponseComplete" || !e.Succeeded() {
			continue
		}
		b := &policyv1.PodDisruptionBudget{}
		if json.Unmarshal(e.ResponseObject, b) == nil && b.UID != "" {
			key := b.Namespace + "/" + b.Name
			out[key] = append(out[key], written{b, e})
		}
	}
	for _, versions := range out {
		slices.SortStableFunc(versions, func(a, b written) int { return revision(a) - revision(b) })
	}
	return out
}

func revision(w written) int {
	n, _ := strconv.Atoi(w.ResourceVersion)
	return n
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (j *judge) violation(format string, args ...any) {
	j.verdict.Violations = append(j.verdict.Violations, fmt.Sprintf(format, args...))
}
