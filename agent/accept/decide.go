package accept

import (
	"fmt"

	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Reasons of refused grants.
const (
	// ReasonStaleEpoch: an older coordinator than the newest one seen gave the grant.
	ReasonStaleEpoch = "StaleEpoch"
	// ReasonGrantMismatch: the grant is for another plan than the one frozen here.
	ReasonGrantMismatch = "GrantMismatch"
	// ReasonHeld: the host's owner refuses grants.
	ReasonHeld = "HeldByOwner"
	// ReasonPackageLockHeld: another process works on the host's packages.
	ReasonPackageLockHeld = upgrade.ReasonPackageLockHeld
	// ReasonOperationRunning: an earlier operation has not ended.
	ReasonOperationRunning = "OperationRunning"
	// ReasonInvalidGrant: the id cannot name an operation.
	ReasonInvalidGrant = "InvalidGrant"
)

// Action is what a grant asks of the agent.
type Action string

// The actions. None: there is nothing to do about a grant.
const (
	None Action = ""
	// Accept: send the acceptance, conditional on the version that carried the grant.
	Accept Action = "Accept"
	// Resume: the acceptance arrived, and this host knows that the work has not begun.
	Resume Action = "Resume"
	// Follow: the work is on record here; it is watched and reported, never started anew.
	Follow Action = "Follow"
	// Lost: the grant was accepted and nothing here knows of it. Look at the host and report.
	Lost Action = "Lost"
	// Refuse: the grant permits nothing here.
	Refuse Action = "Refuse"
)

// Decision is an action on one grant, and why.
type Decision struct {
	Action  Action
	GrantID string
	Reason  string
	Message string
}

// Situation is everything that the rules look at.
type Situation struct {
	// Status is the Machine's, as the API server has it.
	Status v1alpha1.MachineStatus
	// Plan is the frozen plan for the assignment; nil while there is none.
	Plan *upgrade.Plan
	// Epoch is the highest coordinator epoch seen.
	Epoch int64
	// Hold is the veto of the host's owner.
	Hold *upgrade.HoldFacts
	// Lock is the package lock that another process holds.
	Lock *upgrade.LockFacts
	// Running is the operation on record here that has no outcome; "" for none.
	Running string
	// Known says whether a grant is on record here. Intent is what was recorded before an acceptance was sent.
	Known  func(grantID string) bool
	Intent func(grantID string) *store.Intent
	// BootID of this boot.
	BootID string
}

// Decide applies the rules, in order; the first that speaks decides.
func Decide(s Situation) Decision {
	for _, rule := range []func(Situation) *Decision{
		acceptedEarlier, nothingGranted, invalid, onRecord, staleEpoch, mismatch, running, held, locked,
	} {
		if d := rule(s); d != nil {
			return *d
		}
	}
	return Decision{Action: Accept, GrantID: s.Status.Grant.ID}
}

// acceptedEarlier looks at the acceptance before the grant: it binds even when the
// coordinator has meanwhile written another grant, or none.
func acceptedEarlier(s Situation) *Decision {
	if s.Status.Accepted == nil || s.Status.Accepted.GrantID == "" {
		return nil
	}
	id := s.Status.Accepted.GrantID
	if s.Known(id) || ended(s.Status.LastOperation, id) {
		return nil
	}
	if intent := s.Intent(id); intent != nil && intent.BootID == s.BootID && s.BootID != "" && !reported(s.Status.LastOperation, id) {
		return &Decision{Action: Resume, GrantID: id}
	}
	return &Decision{Action: Lost, GrantID: id}
}

func nothingGranted(s Situation) *Decision {
	if g := s.Status.Grant; g == nil || g.Void {
		return &Decision{}
	}
	return nil
}

// onRecord: an id runs at most once on a host; a known one is answered with what is recorded.
func onRecord(s Situation) *Decision {
	id := s.Status.Grant.ID
	if s.Known(id) {
		return &Decision{Action: Follow, GrantID: id}
	}
	if ended(s.Status.LastOperation, id) {
		return &Decision{}
	}
	return nil
}

func staleEpoch(s Situation) *Decision {
	if s.Status.Grant.Epoch >= s.Epoch {
		return nil
	}
	return refuse(s, ReasonStaleEpoch, fmt.Sprintf("grant %s is of epoch %d, epoch %d was seen here", s.Status.Grant.ID, s.Status.Grant.Epoch, s.Epoch))
}

func invalid(s Situation) *Decision {
	if g := s.Status.Grant; !validID(g.ID) {
		return refuse(s, ReasonInvalidGrant, fmt.Sprintf("grant id %q cannot name an operation: letters, digits, dots and dashes only", g.ID))
	}
	return nil
}

// mismatch says nothing while a plan is still being made for the assignment of the grant.
func mismatch(s Situation) *Decision {
	g := s.Status.Grant
	if s.Plan == nil {
		return &Decision{}
	}
	if g.AssignmentID == s.Plan.AssignmentID && g.PlanHash == s.Plan.Hash {
		return nil
	}
	return refuse(s, ReasonGrantMismatch, fmt.Sprintf("grant %s is for plan %.12s of assignment %s; the plan here is %.12s of assignment %s",
		g.ID, g.PlanHash, g.AssignmentID, s.Plan.Hash, s.Plan.AssignmentID))
}

func running(s Situation) *Decision {
	if s.Running == "" {
		return nil
	}
	return refuse(s, ReasonOperationRunning, "operation "+s.Running+" has not ended on this host")
}

func held(s Situation) *Decision {
	if s.Hold == nil {
		return nil
	}
	return refuse(s, ReasonHeld, "the host's owner refuses grants with "+s.Hold.Words()+"; remove the file to go on")
}

// locked: the grant stands, and is accepted as soon as the lock is free.
func locked(s Situation) *Decision {
	if s.Lock == nil {
		return nil
	}
	return refuse(s, ReasonPackageLockHeld, s.Lock.String()+"; the grant is accepted when it is free")
}

func refuse(s Situation, reason, message string) *Decision {
	return &Decision{Action: Refuse, GrantID: s.Status.Grant.ID, Reason: reason, Message: message}
}

func reported(op *v1alpha1.Operation, id string) bool { return op != nil && op.ID == id }

func ended(op *v1alpha1.Operation, id string) bool {
	return reported(op, id) && op.State != v1alpha1.OperationProcessing
}
