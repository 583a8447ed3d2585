package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
)

func TestProgressHasANumberOnlyWithAName(t *testing.T) {
	for name, tc := range map[string]struct {
		op   v1alpha1.Operation
		want string
	}{
		"the first step":       {v1alpha1.Operation{Step: "Preflight", StepsTotal: 8}, "step 1 of 8: Preflight"},
		"a step in the middle": {v1alpha1.Operation{Step: "RestartUnit", StepsDone: 5, StepsTotal: 8}, "step 6 of 8: RestartUnit"},
		"all steps done":       {v1alpha1.Operation{Step: "Verify", StepsDone: 8, StepsTotal: 8}, "step 8 of 8: Verify"},
		"accepted, not begun":  {v1alpha1.Operation{StepsTotal: 8, Description: "Accepted"}, "Accepted"},
		"nothing is known":     {v1alpha1.Operation{StepsTotal: 8}, "the host has begun"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, status.Progress(&tc.op)) })
	}
}
