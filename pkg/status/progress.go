package status

import (
	"cmp"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Progress is where an operation stands, in a few words. One that has no step yet, or
// was refused before the first, has no number either.
func Progress(op *v1alpha1.Operation) string {
	if op.Step == "" || op.StepsTotal == 0 {
		return cmp.Or(op.Description, "the host has begun")
	}
	return fmt.Sprintf("step %d of %d: %s", min(op.StepsDone+1, op.StepsTotal), op.StepsTotal, op.Step)
}
