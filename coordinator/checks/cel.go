package checks

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// evaluate asks an expression. Only true passes; what cannot be evaluated is not known.
func evaluate(ctx context.Context, c compiled, w *world, m *fleet.Machine) (fleet.CheckState, string) {
	vars, err := w.variables(ctx, c, m)
	if err != nil {
		return fleet.CheckUnknown, err.Error()
	}
	out, _, err := c.program.ContextEval(ctx, vars)
	switch {
	case err != nil && ctx.Err() != nil:
		return fleet.CheckUnknown, fmt.Sprintf("the expression was not evaluated within %s", askTimeout)
	case err != nil:
		return fleet.CheckUnknown, "evaluating the expression: " + firstLines(err.Error())
	case out == types.True:
		return fleet.CheckPassed, ""
	case out == types.False:
		return fleet.CheckFailed, "the expression is false"
	}
	return fleet.CheckUnknown, fmt.Sprintf("the expression gives %s, and must give bool", out.Type().TypeName())
}
