package upgrade

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Defaults of what a template can set. They are here and not in the schema: a default
// written into an object would count as its owner's wish.
const (
	DefaultDrainTimeout = 30 * time.Minute
	DefaultMaxSurge     = 0

	OnTimeoutFail    = "Fail"
	OnTimeoutProceed = "Proceed"
	OnTimeoutDelete  = "Delete"

	EmptyDirEvict = "Evict"
	EmptyDirFail  = "Fail"

	UnmanagedPodsFail  = "Fail"
	UnmanagedPodsEvict = "Evict"

	// DefaultVolumeDetachTimeout bounds the wait for volumes before a reboot.
	DefaultVolumeDetachTimeout = 5 * time.Minute

	OnVolumesAttachedFail    = "Fail"
	OnVolumesAttachedProceed = "Proceed"

	SingleNodeRefuse  = "Refuse"
	SingleNodeInPlace = "InPlace"
)

// DrainDefaults is the drain policy of a machine with every unset field filled in.
func DrainDefaults(spec v1alpha1.MachineSpec) v1alpha1.DrainSpec {
	d := v1alpha1.DrainSpec{}
	if spec.Drain != nil {
		d = *spec.Drain.DeepCopy()
	}
	if d.Timeout == nil {
		d.Timeout = &metav1.Duration{Duration: DefaultDrainTimeout}
	}
	if d.SkipWaitForDeleteTimeout == nil {
		d.SkipWaitForDeleteTimeout = &metav1.Duration{}
	}
	if d.LoadBalancerDelay == nil {
		d.LoadBalancerDelay = &metav1.Duration{}
	}
	if d.VolumeDetachTimeout == nil {
		d.VolumeDetachTimeout = &metav1.Duration{Duration: DefaultVolumeDetachTimeout}
	}
	d.OnVolumesAttached = firstOf(d.OnVolumesAttached, OnVolumesAttachedFail)
	d.OnTimeout = firstOf(d.OnTimeout, OnTimeoutFail)
	d.EmptyDir = firstOf(d.EmptyDir, EmptyDirEvict)
	d.UnmanagedPods = firstOf(d.UnmanagedPods, UnmanagedPodsFail)
	d.SingleNode = firstOf(d.SingleNode, SingleNodeRefuse)
	return d
}

// DriftPolicyOf is the drift policy of a machine; unset: Repair.
func DriftPolicyOf(spec v1alpha1.MachineSpec) v1alpha1.DriftPolicy {
	if spec.DriftPolicy == "" {
		return v1alpha1.DriftRepair
	}
	return spec.DriftPolicy
}

// AvailabilityOf is the wished availability of a machine; unset: InService.
func AvailabilityOf(spec v1alpha1.MachineSpec) v1alpha1.Availability {
	if spec.Availability == "" {
		return v1alpha1.AvailabilityInService
	}
	return spec.Availability
}

// RebootPolicyOf says whether the machine may be rebooted when its packages ask for it; unset: IfRequired.
func RebootPolicyOf(spec v1alpha1.MachineSpec) v1alpha1.RebootPolicy {
	if spec.OS == nil || spec.OS.Reboot == "" {
		return v1alpha1.RebootIfRequired
	}
	return spec.OS.Reboot
}
