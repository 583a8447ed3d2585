package drain

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// turns are how long the pods of each drain order may take to end.
type turns map[int]time.Duration

// before is how long the pods of lower orders may take, one order after another.
func (t turns) before(order int) time.Duration {
	sum := time.Duration(0)
	for lower, grace := range t {
		if lower < order {
			sum += grace
		}
	}
	return sum
}

func graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}

// warning is what may come of a pod though nothing is in its way.
func (f *foresight) warning(pod *corev1.Pod, before time.Duration) string {
	var all []string
	_, closes := f.closing(pod)
	for _, text := range []string{mayComeBack(pod), f.mayBeLate(pod, before), closes} {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// mayBeLate warns of a pod that may still be ending at the drain's timeout. The policy Delete
// gives it the time that it needs.
func (f *foresight) mayBeLate(pod *corev1.Pod, before time.Duration) string {
	before += f.opts.LoadBalancerDelay
	grace, timeout := graceOf(pod), f.opts.Timeout
	switch {
	case f.opts.OnTimeout == ActionDelete:
		return ""
	case pod.DeletionTimestamp != nil && pod.DeletionTimestamp.Sub(f.now) > timeout:
		return fmt.Sprintf("may take until %s to end, which is beyond the drain's timeout of %s: give the drain more time", utc(pod.DeletionTimestamp.Time), timeout)
	case pod.DeletionTimestamp != nil || before+grace <= timeout:
		return ""
	case before > 0:
		return fmt.Sprintf("may take %s to end (terminationGracePeriodSeconds), and what goes before it %s, which is more than the drain's timeout of %s: give the drain more time", grace, before, timeout)
	}
	return fmt.Sprintf("may take %s to end (terminationGracePeriodSeconds), which is more than the drain's timeout of %s: give the drain more time", grace, timeout)
}

// utc is how this package writes a time.
func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }
