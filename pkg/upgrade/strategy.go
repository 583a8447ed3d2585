package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// ReasonStrategyNotSupported is that of a pool whose strategy this version would have to ignore.
const ReasonStrategyNotSupported = "StrategyNotSupported"

// UnsupportedStrategy refuses a pool with a rollout setting that this version does not
// carry out: going on without a wanted window or canary is worse than not going on.
func UnsupportedStrategy(d *v1alpha1.MachineDeployment) *Blocked {
	if d == nil || d.Spec.Strategy == nil {
		return nil
	}
	fields := unsupportedFields(d.Spec.Strategy)
	if len(fields) == 0 {
		return nil
	}
	return refuse(ReasonStrategyNotSupported, "MachineDeployment %s sets spec.strategy %s, which this version of Refit does not carry out: remove it to go on", d.Name, strings.Join(fields, ", "))
}

func unsupportedFields(s *v1alpha1.RolloutStrategy) []string {
	var fields []string
	add := func(set bool, name string) {
		if set {
			fields = append(fields, name)
		}
	}
	ru := v1alpha1.RollingUpdate{}
	if s.RollingUpdate != nil {
		ru = *s.RollingUpdate
	}
	add(!slices.Contains([]string{"", v1alpha1.StrategyRollingUpdate, v1alpha1.StrategyManual}, s.Type), fmt.Sprintf("type %s", s.Type))
	add(len(ru.Checks) > 0, "rollingUpdate.checks")
	return fields
}
