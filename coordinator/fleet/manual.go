package fleet

import (
	"strconv"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Manual says that the operator names the pool's next machine.
func (p *Pool) Manual() bool {
	return p.Deployment != nil && p.Deployment.Spec.Strategy != nil && p.Deployment.Spec.Strategy.Type == v1alpha1.StrategyManual
}

// Named says that the operator has named the machine for its spec as it is now: a new spec
// has to be named again.
func (m *Machine) Named() bool {
	return m.Annotations[v1alpha1.AnnotationNext] == strconv.FormatInt(m.Generation, 10)
}
