package preview

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// ReportedFacts is what a Machine reports, in the form of facts: enough to estimate a plan
// by its versions, and never to run one.
func ReportedFacts(m *v1alpha1.Machine) upgrade.Facts { return reportedFacts(m) }

// After is a host once a hop to the target has succeeded by the plan.
func After(f upgrade.Facts, t v1alpha1.Target, plan upgrade.Plan) upgrade.Facts {
	return after(f, t, plan)
}
