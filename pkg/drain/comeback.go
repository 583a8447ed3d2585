package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// returns are the pods that come onto the node while it is drained, and whose they are.
type returns struct {
	came    map[types.UID]bool // pods
	evicted map[types.UID]int  // of those, by controller
}

// note keeps that the pod has come, and says whether to evict it would be in vain: its
// controller has put another one onto the node already, which this drain has evicted.
func (b *returns) note(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	if b.came == nil {
		b.came, b.evicted = map[types.UID]bool{}, map[types.UID]int{}
	}
	b.came[pod.UID] = true
	return b.evicted[owner.UID] > 0
}

// left counts the pod, which was evicted, if it is one of those.
func (b *returns) left(pod *corev1.Pod) {
	if b.came[pod.UID] {
		b.evicted[metav1.GetControllerOf(pod).UID]++
	}
}

// comesBackMessage says who puts the pod onto a cordoned node, how, and what would help.
func comesBackMessage(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	why := "its template names the node (spec.nodeName), or its scheduler heeds no cordon"
	if t := toleratesCordon(pod); t != "" {
		why = "its template has " + t
	}
	return fmt.Sprintf("%s %s puts a pod onto the cordoned node again each time that one is evicted: %s; remove that, or scale it down, and delete this pod", owner.Kind, owner.Name, why)
}

// toleratesCordon names the toleration that lets the scheduler put the pod onto a cordoned node, "" without one.
func toleratesCordon(pod *corev1.Pod) string {
	for _, t := range pod.Spec.Tolerations {
		switch {
		case t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule:
		case t.Key == "" && t.Operator == corev1.TolerationOpExists:
			return "a toleration of every taint"
		case t.Key == corev1.TaintNodeUnschedulable && (t.Operator == corev1.TolerationOpExists || t.Value == ""):
			return "a toleration of " + corev1.TaintNodeUnschedulable
		}
	}
	return ""
}

// mayComeBack warns of a pod whose replacement may be put onto the very node, "" of any other.
func mayComeBack(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind == "DaemonSet" {
		return ""
	}
	t := toleratesCordon(pod)
	if t == "" {
		return ""
	}
	return fmt.Sprintf("%s %s may put its replacement onto the cordoned node again: its template has %s; remove that, or scale it down", owner.Kind, owner.Name, t)
}
