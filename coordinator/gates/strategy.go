package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A rollout setting that this version does not carry out must not be ignored: going
// on without a wanted window or canary is worse than not going on.
func strategy(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	d := m.Pool.Deployment
	if d == nil || d.Spec.Strategy == nil {
		return nil
	}
	unsupported := unsupportedFields(m.Pool)
	if len(unsupported) == 0 {
		return nil
	}
	return &Verdict{ReasonStrategyNotSupported, fmt.Sprintf(
		"MachineDeployment %s sets spec.strategy %s, which this version of Refit does not carry out: remove it to go on",
		d.Name, strings.Join(unsupported, ", "))}
}

func unsupportedFields(p *fleet.Pool) []string {
	var fields []string
	add := func(set bool, name string) {
		if set {
			fields = append(fields, name)
		}
	}
	ru := p.Rolling()
	add(p.Deployment.Spec.Strategy.Type == "Manual", "type Manual")
	add(ru.Canary != nil, "rollingUpdate.canary")
	add(len(ru.Checks) > 0, "rollingUpdate.checks")
	add(len(ru.Windows) > 0, "rollingUpdate.windows")
	add(ru.MaxSurge != nil && *ru.MaxSurge != intstr.FromInt32(0) && *ru.MaxSurge != intstr.FromString("0%"), "rollingUpdate.maxSurge")
	return fields
}
