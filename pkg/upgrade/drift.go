package upgrade

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Drifted is the agent's word that the host has left this very spec by itself; nil where it has not.
func Drifted(m *v1alpha1.Machine) *metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrifted)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != m.Generation {
		return nil
	}
	return c
}

// driftBlocks says that a drifted host is only told of, as its policy wants. Another spec is
// another wish, and goes on.
func driftBlocks(m *v1alpha1.Machine) *Blocked {
	c := Drifted(m)
	if c == nil || DriftPolicyOf(m.Spec) != v1alpha1.DriftReport {
		return nil
	}
	return wait(ReasonDriftReported, "%s left its spec by itself (%s), and spec.driftPolicy is Report, so nothing is done about it: bring the host back yourself, or set spec.driftPolicy to Repair", m.Name, c.Message)
}

// wishOfDrifted is the wish of a host, without the kubelet where somebody made that newer than
// spec within its minor. It is ahead, and not taken back by itself, though the host's record
// would permit that; what else has drifted is repaired.
func wishOfDrifted(m *v1alpha1.Machine, h HostState) v1alpha1.Versions {
	wish := h.Wish
	if Drifted(m) == nil {
		return wish
	}
	want, known := ParseKubernetes(string(wish.Kubelet))
	now, err := h.kubelet()
	if known && err == nil && want.LessThan(now) && want.SameMinor(now) {
		wish.Kubelet = ""
	}
	return wish
}
