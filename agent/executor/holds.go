package executor

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// held are the packages on hold after all finished steps of a record: the holds at the
// start, changed by each hold step that is done, in either direction.
func held(rec journal.Record) map[string]bool {
	now := map[string]bool{}
	if rec.Baseline != nil {
		now = set(rec.Baseline.Holds)
	}
	for i, s := range rec.Steps {
		if s.State == journal.StepDone {
			applyHold(now, rec.Operation.Plan.Steps[i])
		}
	}
	for _, s := range rec.Rollback {
		if s.State == journal.StepDone {
			applyHold(now, *s.Step)
		}
	}
	return now
}

func applyHold(now map[string]bool, step upgrade.Step) {
	if step.Kind != upgrade.StepHoldPackages && step.Kind != upgrade.StepUnholdPackages {
		return
	}
	for _, c := range step.Packages {
		now[c.Name] = step.Kind == upgrade.StepHoldPackages
	}
}

// lost are the owner's holds that this operation has taken off and not put back.
func lost(rec journal.Record) []string {
	if rec.Baseline == nil {
		return nil
	}
	now := held(rec)
	for i, s := range rec.Steps {
		// Begun and not done: the hold may be off already.
		if s.Kind == upgrade.StepUnholdPackages && s.State != journal.StepPending && s.State != journal.StepDone {
			applyHold(now, rec.Operation.Plan.Steps[i])
		}
	}
	var names []string
	for _, name := range rec.Baseline.Holds {
		if !now[name] {
			names = append(names, name)
		}
	}
	return names
}

// restoreHolds puts the owner's holds back. Packages that the operation removed for
// good have no hold to get back.
func (o *operation) restoreHolds(ctx context.Context, succeeded bool) error {
	rec := o.j.Record()
	gone := map[string]bool{}
	if succeeded {
		gone = removed(rec.Operation.Plan)
	}
	var names []string
	for _, name := range lost(rec) {
		if !gone[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := o.Host.Packages.SetHold(ctx, names, true); err != nil {
		return fmt.Errorf("putting %v back on hold: %w", names, err)
	}
	return nil
}

// reopenHolds takes those holds off again that a stop put back in the middle.
func (o *operation) reopenHolds(ctx context.Context) error {
	names := lost(o.j.Record())
	if len(names) == 0 {
		return nil
	}
	if err := o.Host.Packages.SetHold(ctx, names, false); err != nil {
		return fmt.Errorf("taking %v off hold to go on: %w", names, err)
	}
	return nil
}

func removed(p upgrade.Plan) map[string]bool {
	gone := map[string]bool{}
	for _, s := range p.Steps {
		for _, c := range s.Packages {
			if s.Kind == upgrade.StepInstallPackages {
				gone[c.Name] = c.To == ""
			}
		}
	}
	return gone
}

func set(names []string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
