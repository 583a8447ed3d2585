package steps

import (
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// sameVersion compares what runs with what is wanted. Build metadata of a vendor
// does not make another version; a different patch does, and so does a pre-release.
func sameVersion(got, want string) bool {
	return got != "" && bare(got) == bare(want)
}

func bare(text string) string {
	text, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "v"), "+")
	return text
}

// expectation of the plan's end, empty when the plan verifies nothing.
func expectation(p upgrade.Plan) upgrade.Expectation {
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if s := p.Steps[i]; s.Kind == upgrade.StepVerify && s.Expect != nil {
			return *s.Expect
		}
	}
	return upgrade.Expectation{}
}

// ExpectationOf is what a plan says must be observed at its end.
func ExpectationOf(p upgrade.Plan) upgrade.Expectation { return expectation(p) }
