package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// ReasonStrategyNotSupported is that of a pool whose strategy this version would have to ignore.
const ReasonStrategyNotSupported = "StrategyNotSupported"

// UnsupportedStrategy refuses a pool with a strategy that this version does not know, as of a newer one's CRD: going on
// without what a pool asks for is worse than not going on.
func UnsupportedStrategy(d *v1alpha1.MachineDeployment) *Blocked {
	if d == nil || d.Spec.Strategy == nil || slices.Contains([]string{"", v1alpha1.StrategyRollingUpdate, v1alpha1.StrategyManual}, d.Spec.Strategy.Type) {
		return nil
	}
	return refuse(ReasonStrategyNotSupported, "MachineDeployment %s sets spec.strategy type %s, which this version of Refit does not carry out: remove it to go on", d.Name, d.Spec.Strategy.Type)
}
