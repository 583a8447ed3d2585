package steps

import "github.com/refit-dev/refit/pkg/upgrade"

// ExpectationOf is what a plan says must be observed at its end, empty when it verifies nothing.
func ExpectationOf(p upgrade.Plan) upgrade.Expectation {
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if s := p.Steps[i]; s.Kind == upgrade.StepVerify && s.Expect != nil {
			return *s.Expect
		}
	}
	return upgrade.Expectation{}
}
