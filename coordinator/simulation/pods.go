package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/refit-dev/refit/coordinator/fleet"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podMatch is a budget with its selector read.
type podMatch struct {
	key      types.NamespacedName
	selector labels.Selector
}

func keyOfPod(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (w *world) putPod(p *corev1.Pod) {
	key := keyOfPod(p)
	w.stamp("Pod", p)
	if old := w.pods[key]; old != nil {
		delete(w.podsOn[old.Spec.NodeName], key)
	}
	w.pods[key] = p
	if w.podsOn[p.Spec.NodeName] == nil {
		w.podsOn[p.Spec.NodeName] = podSet{}
	}
	w.podsOn[p.Spec.NodeName][key] = true
	w.podsNews()
}

func (w *world) removePod(key types.NamespacedName) {
	if old := w.pods[key]; old != nil {
		delete(w.podsOn[old.Spec.NodeName], key)
		delete(w.pods, key)
		w.podsNews()
	}
}

func (w *world) podsNews() {
	w.podNews++
	w.changed.podsChanged()
}

// podsOf are the pods of a node, in the order of their names.
func (w *world) podsOf(node string) []*corev1.Pod {
	keys := make([]types.NamespacedName, 0, len(w.podsOn[node]))
	for key := range w.podsOn[node] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	out := make([]*corev1.Pod, 0, len(keys))
	for _, key := range keys {
		out = append(out, w.pods[key])
	}
	return out
}

// allPods in the order of their names.
func (w *world) allPods() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(w.pods))
	for _, key := range slices.SortedFunc(maps.Keys(w.pods), compareKeys) {
		out = append(out, w.pods[key])
	}
	return out
}

func (w *world) putPodBudget(b *policyv1.PodDisruptionBudget) error {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return &InputError{Object: "PodDisruptionBudget/" + b.Name, Field: "spec.selector", Message: err.Error()}
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	w.stamp("PodDisruptionBudget", b)
	w.podBudgets[key] = b
	known := slices.DeleteFunc(w.matching[b.Namespace], func(m *podMatch) bool { return m.key == key })
	known = append(known, &podMatch{key, selector})
	slices.SortFunc(known, func(x, y *podMatch) int { return compareKeys(x.key, y.key) })
	w.matching[b.Namespace] = known
	w.podsNews()
	return nil
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func podFinished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// setPodReady also says that a pod runs.
func (w *world) setPodReady(p *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status, p.Status.Phase = corev1.ConditionTrue, corev1.PodRunning
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.NewTime(w.now())
			}
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(w.now())})
}

// members are the pods of a budget that have not finished.
func (w *world) members(b *policyv1.PodDisruptionBudget) []*corev1.Pod {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil
	}
	var out []*corev1.Pod
	for _, p := range w.pods {
		if p.Namespace == b.Namespace && !podFinished(p) && selector.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y *corev1.Pod) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// settleBudgets does what the disruption controller does. The pods that are there are those
// that are expected: a pod that leaves is replaced at once, if only by one that is not ready.
func (w *world) settleBudgets() {
	for key, b := range w.podBudgets {
		members := w.members(b)
		healthy := int32(0)
		for _, p := range members {
			if podReady(p) && p.DeletionTimestamp == nil {
				healthy++
			}
		}
		expected := int32(len(members))
		next := b.DeepCopy()
		next.Status.ExpectedPods, next.Status.CurrentHealthy = expected, healthy
		next.Status.DesiredHealthy = desiredHealthy(b, int(expected))
		next.Status.DisruptionsAllowed = max(healthy-next.Status.DesiredHealthy, 0)
		next.Status.ObservedGeneration = next.Generation
		if !sameJSON(b.Status, next.Status) {
			w.stamp("PodDisruptionBudget", next)
			w.podBudgets[key] = next
		}
	}
}

func desiredHealthy(b *policyv1.PodDisruptionBudget, expected int) int32 {
	scaled := func(v *intstr.IntOrString) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, expected, true)
		if err != nil {
			return int32(expected)
		}
		return int32(n)
	}
	switch {
	case b.Spec.MinAvailable != nil:
		return scaled(b.Spec.MinAvailable)
	case b.Spec.MaxUnavailable != nil:
		return max(int32(expected)-scaled(b.Spec.MaxUnavailable), 0)
	}
	return 0
}

func (w *world) budgetsIn(namespaces map[string]bool) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for namespace := range namespaces {
		for _, m := range w.matching[namespace] {
			out = append(out, w.podBudgets[m.key])
		}
	}
	slices.SortFunc(out, func(x, y *policyv1.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Namespace, y.Namespace))
	})
	return out
}

// place finds the node for a pod that came from another one: the ready and schedulable one
// with the fewest pods; "" where there is none.
func (w *world) place(from *corev1.Node) string {
	var source *fleet.Node
	if from != nil {
		source = fleet.NodeOf(from)
	} else {
		source = &fleet.Node{}
	}
	best, least := "", 0
	list := w.listNodes()
	for i := range list {
		n := fleet.NodeOf(&list[i])
		if !n.TakesPodsOf(source) {
			continue
		}
		if count := len(w.podsOn[n.Name]); best == "" || count < least {
			best, least = n.Name, count
		}
	}
	return best
}

// replacement is the pod that a controller makes for one that has left.
func replacement(p *corev1.Pod, n int) *corev1.Pod {
	next := p.DeepCopy()
	next.Name = fmt.Sprintf("%s-r%d", baseName(p), n)
	next.UID, next.ResourceVersion, next.DeletionTimestamp, next.DeletionGracePeriodSeconds = "", "", nil, nil
	next.CreationTimestamp = metav1.Time{}
	next.Annotations = map[string]string{annotationBase: baseName(p)}
	next.Spec.NodeName = ""
	next.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return next
}

const annotationBase = "simulation.refit.dev/first"

func baseName(p *corev1.Pod) string { return cmp.Or(p.Annotations[annotationBase], p.Name) }
