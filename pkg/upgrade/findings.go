package upgrade

import (
	"errors"
	"slices"
)

// finder judges one thing about a host that has work to do. Each is pure and looks at
// facts and at the finished steps; what it says with severity Error blocks the plan.
type finder func(p *planner) []Finding

// finders are in the order in which a person would want to read what they find.
var finders = []finder{
	unknownFacts,
	drainSkipped,
	removedFlags,
	removedGates,
	cgroupVersion,
	kubeletState,
	overruledSettings,
	runtimeLosingSupport,
	runtimeConfiguration,
	cgroupDrivers,
	sandboxImages,
	runtimeEndpoints,
	duplicateStaticPods,
	removedAPIs,
	phasesLeftOut,
	knownBadRelease,
	etcdFloor,
	etcdRemoved,
	etcdReady,
	expiringCertificates,
	space,
	pendingReboot,
	foreignManagers,
	ownersHold,
	heldPackages,
	heldSecurityUpdates,
	securityUpdatesOutside,
}

// preflight adds what the finders find, and refuses the plan when one of them found an Error.
func (p *planner) preflight() error {
	if len(p.steps) == 0 {
		return nil
	}
	for _, look := range finders {
		p.findings = append(p.findings, look(p)...)
	}
	return Refusal(p.findings)
}

// passingFindings may pass without another spec: the host is looked at again.
var passingFindings = []string{
	FindingFactUnknown, FindingEtcdNoQuorum, FindingEtcdUnhealthy, FindingEtcdBehind, FindingEtcdLearner,
	FindingEtcdQuorumAtRisk, FindingEtcdTwoMembers, FindingEtcdAlarm,
}

// Refusal turns findings of severity Error into one refusal, with the reason of the
// first; nil when there are none. It may pass by itself only when all of them may.
func Refusal(findings []Finding) error {
	var blocked *Blocked
	for _, f := range findings {
		switch {
		case f.Severity != SeverityError:
			continue
		case blocked == nil:
			blocked = &Blocked{Reason: f.Reason, Message: f.Message}
		default:
			blocked.Message += "; " + f.Message
		}
		blocked.Terminal = blocked.Terminal || !slices.Contains(passingFindings, f.Reason)
	}
	if blocked == nil {
		return nil
	}
	return blocked
}

// IsBlocked returns the refusal in an error, or nil.
func IsBlocked(err error) *Blocked {
	var blocked *Blocked
	errors.As(err, &blocked)
	return blocked
}
