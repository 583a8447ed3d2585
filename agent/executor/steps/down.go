package steps

import (
	"context"
	"slices"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// downGrace is how long a unit is looked at before it counts as one that does not run.
const downGrace = 10 * time.Second

// Down are the units that a plan restarts and that do not work now, before its first step:
// neither the plan nor its undo is to insist on them for what the plan does not mend.
func Down(ctx context.Context, h *Host, p upgrade.Plan, poll time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, min(downGrace, 100*poll))
	defer cancel()
	var down []string
	for _, unit := range restarted(p) {
		if await(ctx, poll, func(ctx context.Context) error { return works(ctx, h, unit) }) != nil {
			down = append(down, unit)
		}
	}
	return down
}

// restarted are the units that a plan starts anew, in the order in which it does.
func restarted(p upgrade.Plan) []string {
	var units []string
	for _, s := range p.Steps {
		if s.Kind == upgrade.StepRestartUnit && !slices.Contains(units, s.Unit) {
			units = append(units, s.Unit)
		}
	}
	return units
}
