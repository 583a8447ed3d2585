// Package gates holds the vetoes that stand between a frozen plan and its slot. Each
// gate is a pure function in a file of its own; the order below is the order in which
// an operator should hear of them: what a person decided first, then what is unsafe,
// then what merely has to wait its turn.
package gates

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Verdict is why a machine may not go now: Reason for programs, Message for people. What of
// it is another word with every machine that comes and goes is in Moment, which goes on with
// Message where that ends: it is shown where somebody asks, and never written into the
// Machines that wait, which may be thousands.
type Verdict struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Moment  string `json:"-"`
}

// Text is all that is said, Moment included.
func (v Verdict) Text() string { return v.Message + v.Moment }

// momentary is what a message goes on with for this moment.
func momentary(text string) string { return ": " + text }

// Says is whether both say the same, whatever the moment.
func (v Verdict) Says(other Verdict) bool {
	return v.Reason == other.Reason && v.Message == other.Message
}

// Gate vetoes, or lets pass with nil.
type Gate struct {
	Name  string
	Judge func(f *fleet.Fleet, m *fleet.Machine) *Verdict
}

// Reasons of the gates.
const (
	ReasonStopped                 = "Stopped"
	ReasonPaused                  = "Paused"
	ReasonNoMachines              = fleet.ReasonNoMachines
	ReasonDeploymentConflict      = "DeploymentConflict"
	ReasonStrategyNotSupported    = "StrategyNotSupported"
	ReasonHeld                    = "Held"
	ReasonForeignCordon           = "ForeignCordon"
	ReasonRetryLater              = "RetryLater"
	ReasonDrainImpossible         = "DrainImpossible"
	ReasonForecastPending         = "ForecastPending"
	ReasonFailureThreshold        = "FailureThresholdReached"
	ReasonControlPlaneBusy        = "ControlPlaneBusy"
	ReasonControlPlaneUnavailable = "ControlPlaneUnavailable"
	ReasonEtcdUnknown             = "EtcdUnknown"
	ReasonEtcdNotWell             = "EtcdNotWell"
	ReasonBudgetExhausted         = "BudgetExhausted"
	ReasonInFlightExhausted       = "InFlightExhausted"
	ReasonNoCapacity              = "NoCapacity"
	ReasonNoStandby               = "NoStandby"
	ReasonDomainBusy              = "DomainBusy"
	ReasonFleetDegraded           = "FleetDegraded"
	ReasonCheckUnknown            = "CheckUnknown"
	ReasonCheckFailed             = "CheckFailed"
	ReasonCheckInvalid            = "CheckInvalid"
	ReasonCanaryPending           = "CanaryPending"
	ReasonCanaryFailed            = "CanaryFailed"
	ReasonAwaitingNext            = "AwaitingNext"
	ReasonWindowInvalid           = "WindowInvalid"
	ReasonOutsideWindow           = "OutsideWindow"
	ReasonWindowTooShort          = "WindowTooShort"
)

// All gates in order.
var All = []Gate{
	{"stopped", stopped},                       // the namespace-wide switch
	{"paused", paused},                         // the machine's or its deployment's
	{"lost-pool", lostPool},                    // all machines of a deployment have left it
	{"conflict", conflict},                     // two deployments claim the machine
	{"strategy", strategy},                     // a setting that this version would ignore
	{"held", held},                             // the host takes no grant: its owner says no, or its packages are worked on
	{"manual", manual},                         // the operator names the next one
	{"window", withinWindow},                   // outside of the hours of its pool, or too late in them
	{"cordoned", cordoned},                     // by someone else
	{"retry", retryLater},                      // backoff after a blocked drain
	{"forecast", forecast},                     // a drain that can never succeed
	{"failure-threshold", failureThreshold},    // the rollout paused itself
	{"degraded", degraded},                     // machines beside it went down
	{"canary", canary},                         // those that go first, alone
	{"control-plane-first", controlPlaneFirst}, // and skew with it
	{"control-plane", controlPlaneOneByOne},    // built in, no object widens it
	{"etcd", etcdWell},                         // likewise; by what the hosts say of its members
	{"topology", topology},                     // one domain after another
	{"capacity", capacity},                     // where would the pods go
	{"standby", standby},                       // maxUnavailable 0 and nobody to take over
	{"budget", budget},                         // of the deployment
	{"disruption-budgets", disruptionBudgets},  // MachineDisruptionBudgets
	{"checks", checks},                         // asked only for those that nothing else holds
}

// Check returns the first veto, nil when the machine may have a slot now.
func Check(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, g := range All {
		if v := g.Judge(f, m); v != nil {
			return v
		}
	}
	return nil
}

// Withdrawn returns the veto that also takes back a slot that the agent has not
// accepted yet: a person's word counts until the work has begun, and so do the hours
// that a person has set.
func Withdrawn(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, judge := range []func(*fleet.Fleet, *fleet.Machine) *Verdict{stopped, paused, lostPool, conflict, held, manual, outsideWindow} {
		if v := judge(f, m); v != nil {
			return v
		}
	}
	return nil
}

// Halts are the machines in a slot without a grant whose rollout has paused itself since:
// nobody is drained, or granted anything, for a rollout that goes no further. It takes the
// whole pool to judge that.
func Halts(f *fleet.Fleet) map[string]Verdict {
	out := map[string]Verdict{}
	for _, m := range f.Machines {
		if m.Slot == nil || m.Slot.State != v1alpha1.SlotReserved || m.Slot.DrainsOnly {
			continue
		}
		if v := failureThreshold(f, m); v != nil {
			out[m.Name] = *v
		} else if v := canary(f, m); v != nil && v.Reason == ReasonCanaryFailed {
			out[m.Name] = *v
		}
	}
	return out
}
