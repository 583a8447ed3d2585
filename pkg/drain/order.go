package drain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// mostOrder bounds the values of the drain-order label on both sides.
const mostOrder = 1000

// ownOrder is the order of pods that Options.EvictLast names.
const ownOrder = math.MaxInt

// orderOf reads when a pod goes: pods of a higher order are evicted when all of a lower
// one have left. Without the label, or with one that cannot be read, it is 0.
func orderOf(pod *corev1.Pod) (int, error) {
	text, labelled := pod.Labels[v1alpha1.LabelDrainOrder]
	if !labelled {
		return 0, nil
	}
	order, err := strconv.Atoi(text)
	if err != nil || order < -mostOrder || order > mostOrder {
		return 0, fmt.Errorf("its label %s is %q, which is no whole number from -%d to %d: it counts as 0", v1alpha1.LabelDrainOrder, text, mostOrder, mostOrder)
	}
	return order, nil
}

// turn is the lowest order that is still here: only its pods are evicted.
func (r *run) turn() int {
	lowest := ownOrder
	for _, e := range r.entries {
		lowest = min(lowest, e.order)
	}
	return lowest
}

// ordered lists the entries as they are to go: by order, then the least important first,
// then by the time of the last try, so that none starves.
func (r *run) ordered() []*entry {
	out := make([]*entry, 0, len(r.entries))
	for _, e := range r.entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *entry) int {
		return cmp.Or(
			cmp.Compare(a.order, b.order), cmp.Compare(priority(a.pod), priority(b.pod)), a.tried.Compare(b.tried),
			cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name),
		)
	})
	return out
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
