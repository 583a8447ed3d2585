package metrics

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
)

func (s *sample) rollouts() {
	for i := range s.fleet.deployments {
		d := &s.fleet.deployments[i]
		s.emit(rolloutHalted, one(meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionProgressing)), d.Name)
		s.emit(rolloutPaused, one(d.Spec.Paused), d.Name)
		if p := s.fleet.Pools[d.Name]; p != nil {
			current := 0
			for _, m := range p.Machines {
				current += one(UpToDate(m.Machine))
			}
			s.c.emit(s.to, rolloutProgress, float64(current)/float64(len(p.Machines)), s.namespace, d.Name)
		}
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
