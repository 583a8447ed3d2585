package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/checks"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/forecasts"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
	"k8s.io/apimachinery/pkg/types"
)

// Forecaster foresees drains.
type Forecaster interface {
	// Known is what is foreseen already.
	Known(machine types.NamespacedName, generation int64) (fleet.Forecast, bool)
	// Ask makes a forecast now.
	Ask(ctx context.Context, req forecasts.Request) fleet.Forecast
	// Follow keeps the forecasts of these machines of a namespace up to date.
	Follow(namespace string, next []forecasts.Request)
}

// What is foreseen for the machines of one namespace is bounded, however many wait: those
// that are next, those whose drain is impossible (they may become possible), and those
// that one pass asks about before it reserves.
const (
	mostNext       = 16
	mostImpossible = 48
	mostAsked      = 16
)

// recall puts down on the machines what is foreseen for them.
func (r *Reconciler) recall(f *fleet.Fleet) {
	for _, m := range f.Machines {
		if m.Slot != nil || !fleet.NeedsDrain(m) {
			continue
		}
		if known, ok := r.Forecasts.Known(keyOf(m), m.Generation); ok {
			m.Forecast = &known
		}
	}
}

// check is gates.Check, and for a machine that passes it without a forecast makes one, as
// long as this pass may.
func (r *Reconciler) check(ctx context.Context, f *fleet.Fleet, m *fleet.Machine, asked *int) *gates.Verdict {
	if v := gates.Check(f, m); v != nil {
		return v
	}
	if m.Forecast != nil || !fleet.NeedsDrain(m) {
		return nil
	}
	if *asked >= mostAsked {
		return &gates.Verdict{Reason: gates.ReasonForecastPending, Message: "whether its drain can succeed is not known yet"}
	}
	*asked++
	made := r.Forecasts.Ask(ctx, r.request(f, m))
	m.Forecast = &made
	return gates.Check(f, m)
}

// askAgain is when another pass is due, since not every drain that is impossible is
// followed, not every machine could be asked about, and no event tells of a check.
func askAgain(verdicts map[string]gates.Verdict) time.Duration {
	var in time.Duration
	for _, v := range verdicts {
		switch v.Reason {
		case gates.ReasonForecastPending:
			return pendingDelay
		case gates.ReasonCheckFailed, gates.ReasonCheckUnknown:
			in = checks.Every
		case gates.ReasonDrainImpossible:
			if in == 0 {
				in = forecasts.Keeps
			}
		}
	}
	return in
}

const pendingDelay = time.Second

// follow has the forecasts of the machines kept up to date that are next.
func (r *Reconciler) follow(namespace string, f *fleet.Fleet) {
	var next []forecasts.Request
	for _, m := range upcoming(order.Candidates(f)) {
		next = append(next, r.request(f, m))
	}
	r.Forecasts.Follow(namespace, next)
}

// upcoming are the first candidates that have to be drained.
func upcoming(candidates []*fleet.Machine) []*fleet.Machine {
	var out []*fleet.Machine
	left, leftImpossible := mostNext, mostImpossible
	for _, m := range candidates {
		room := &left
		if m.DrainImpossible() {
			room = &leftImpossible
		}
		if !fleet.NeedsDrain(m) || *room == 0 {
			continue
		}
		*room--
		out = append(out, m)
	}
	return out
}

func (r *Reconciler) request(f *fleet.Fleet, m *fleet.Machine) forecasts.Request {
	elsewhere, disruption := f.HasPlaceFor(m.Node), m.Status.Plan.Disruption
	return forecasts.Request{
		Machine: keyOf(m), Generation: m.Generation, Node: m.Node.Name,
		Options: drains.OptionsFor(m.Spec, elsewhere, disruption, r.OwnPods),
		Version: fmt.Sprintf("%d %s %s %t", m.Generation, m.Node.UID, disruption, elsewhere),
	}
}

func keyOf(m *fleet.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}
