package fleet

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Bounds of a rollout where the deployment says nothing.
const (
	DefaultMaxUnavailable      = 1
	DefaultMaxInFlightPercent  = 10
	DefaultFailureThreshold    = 1
	defaultMinimumOfPercentage = 1
)

// Rolling is the pool's rollingUpdate, never nil.
func (p *Pool) Rolling() v1alpha1.RollingUpdate {
	if p.Deployment == nil || p.Deployment.Spec.Strategy == nil || p.Deployment.Spec.Strategy.RollingUpdate == nil {
		return v1alpha1.RollingUpdate{}
	}
	return *p.Deployment.Spec.Strategy.RollingUpdate
}

// Size is the number of machines that should serve: replicas, or all that count and do
// not stand by of their own.
func (p *Pool) Size() int {
	if p.Deployment != nil && p.Deployment.Spec.Replicas != nil {
		return int(*p.Deployment.Spec.Replicas)
	}
	if p.size == nil { // asked for each of very many machines
		n := 0
		for _, m := range p.Machines {
			if !m.OutOfService() && !m.WishedStandby() {
				n++
			}
		}
		p.size = &n
	}
	return *p.size
}

// MaxUnavailable machines of the pool. A percentage is rounded down, to at least one:
// half of eleven machines is five.
func (p *Pool) MaxUnavailable() int {
	v := p.Rolling().MaxUnavailable
	if v == nil {
		return DefaultMaxUnavailable
	}
	return Scaled(*v, p.Size(), defaultMinimumOfPercentage)
}

// MaxInFlight bounds the work that takes no pods away.
func (p *Pool) MaxInFlight() int {
	v := p.Rolling().MaxInFlight
	if v == nil {
		d := intstr.FromString("10%")
		v = &d
	}
	return Scaled(*v, p.Size(), defaultMinimumOfPercentage)
}

// FailureThreshold is the number of failed machines at which the pool pauses itself.
func (p *Pool) FailureThreshold() int {
	v := p.Rolling().FailureThreshold
	if v == nil {
		return DefaultFailureThreshold
	}
	return Scaled(*v, p.Size(), defaultMinimumOfPercentage)
}

// Scaled is a count as it is, or a percentage of total rounded down but not below minimum.
// A text that is no percentage cannot pass the schema; it counts as minimum.
func Scaled(v intstr.IntOrString, total, minimum int) int {
	if v.Type == intstr.Int {
		return v.IntValue()
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, total, false)
	if err != nil || n < minimum {
		return minimum
	}
	return n
}

// ScaledUp is a count as it is, or a percentage of total rounded up. A text that is
// no percentage cannot pass the schema; it counts as all.
func ScaledUp(v intstr.IntOrString, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, total, true)
	if err != nil {
		return total
	}
	return n
}
