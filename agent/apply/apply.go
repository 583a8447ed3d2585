package apply

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Executor is what is asked of the host: what the agent asks, too.
type Executor interface {
	planning.Executor
	Start(ctx context.Context, id string) error
	Running(ctx context.Context, id string) (bool, error)
	Alive(ctx context.Context, id string) (bool, error)
	Wait(ctx context.Context, id string) error
	Release(ctx context.Context, id string) error
}

// Applier lets a host carry out what it grants itself.
type Applier struct {
	Executor Executor
	Store    *store.Store
	// Hold reads the veto of the host's owner.
	Hold func() *upgrade.HoldFacts
	// MachineID and BootID of this host.
	MachineID, BootID string
	// LockFile is held while an operation is accepted: two at once would both find the host free.
	LockFile string
	// Poll is the pause between two looks at the journal.
	Poll time.Duration
}

// Claim binds the state directory to this machine before anything in it is believed; moved
// is where the state of another machine went.
func (a *Applier) Claim() (moved string, err error) {
	moved, err = a.Store.Claim(a.MachineID)
	return moved, errors.Join(err, a.Store.MakeDirs())
}

// UnderWay is the operation without an outcome that is to be followed instead of a new
// one: that of the same assignment. One of another is a refusal.
func (a *Applier) UnderWay(assignmentID string) (*upgrade.Operation, error) {
	op, err := a.open()
	if err != nil || op == nil {
		return nil, err
	}
	if op.Plan.AssignmentID != assignmentID {
		return nil, &upgrade.Blocked{Reason: accept.ReasonOperationRunning, Message: fmt.Sprintf("operation %s has no outcome on this host yet, and it is not of this file: one goes on at a time. Follow it with the file that it was begun with, or start refit-agent.service where a cluster began it; refit-agent operations says where it stands", op.ID)}
	}
	return op, nil
}

// open is the operation of this host that has no outcome; nil for none.
func (a *Applier) open() (*upgrade.Operation, error) {
	records, err := a.Store.Open()
	if err != nil {
		return nil, fmt.Errorf("looking for open operations: %w", err)
	}
	if n := len(records); n > 0 {
		return &records[n-1].Operation, nil
	}
	unbegun, err := a.Store.Unbegun()
	if err != nil {
		return nil, fmt.Errorf("looking for accepted operations: %w", err)
	}
	if n := len(unbegun); n > 0 {
		return &unbegun[n-1], nil
	}
	return nil, nil
}

// Permit says whether the host would grant itself a plan, by the rules for every grant.
func (a *Applier) Permit(plan upgrade.Plan) error {
	_, err := a.grant(plan)
	return err
}

// Accept stages and freezes a plan, grants it, and hands it to the executor, which is not
// started yet. A refusal is a *upgrade.Blocked.
func (a *Applier) Accept(ctx context.Context, machine *v1alpha1.Machine, plan upgrade.Plan) (upgrade.Operation, error) {
	planner := planning.Planner{Executor: a.Executor, Records: a.Store}
	outcome := planner.Freeze(ctx, plan, machine.Generation)
	if r := outcome.Refused; r != nil {
		return upgrade.Operation{}, &upgrade.Blocked{Reason: r.Reason, Message: r.Message, Terminal: r.Terminal}
	}
	plan = outcome.Frozen.Plan
	release, err := a.lock(ctx)
	if err != nil {
		return upgrade.Operation{}, err
	}
	defer release()
	grant, err := a.grant(plan)
	if err != nil {
		return upgrade.Operation{}, err
	}
	op := upgrade.Operation{ID: grant.ID, Machine: machine.Name, Plan: plan}
	acceptor := accept.Acceptor{Records: a.Store, API: self{}}
	_, err = acceptor.Accept(ctx, accept.Request{Operation: op, BootID: a.BootID})
	return op, err
}

// lock waits for another command that is just granting, which takes it no time to speak of.
func (a *Applier) lock(ctx context.Context) (release func(), err error) {
	for range 20 {
		if release, err = files.Lock(a.LockFile); !errors.Is(err, files.ErrLocked) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(a.poll()):
		}
	}
	return release, err
}

// grant is one that the host gives itself, judged as one of a coordinator.
func (a *Applier) grant(plan upgrade.Plan) (*v1alpha1.Grant, error) {
	id, err := newID(plan.AssignmentID)
	if err != nil {
		return nil, err
	}
	open, err := a.open()
	if err != nil {
		return nil, err
	}
	grant := &v1alpha1.Grant{ID: id, AssignmentID: plan.AssignmentID, PlanHash: plan.Hash}
	s := accept.Situation{
		Status: v1alpha1.MachineStatus{Grant: grant}, Plan: &plan, Hold: a.Hold(), BootID: a.BootID,
		Known:  func(id string) bool { known, err := a.Store.Known(id); return known || err != nil },
		Intent: func(string) *store.Intent { return nil },
	}
	if open != nil {
		s.Running = open.ID
	}
	switch d := accept.Decide(s); d.Action {
	case accept.Accept:
		return grant, nil
	case accept.Refuse:
		return nil, &upgrade.Blocked{Reason: d.Reason, Message: d.Message}
	default:
		return nil, fmt.Errorf("granting plan %s to this host: the grant was taken for %q: this must not happen, nothing was changed", plan.Hash, d.Action)
	}
}

// newID is unique: a grant runs at most once.
func newID(assignmentID string) (string, error) {
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("drawing an id: %w", err)
	}
	return assignmentID + "-" + hex.EncodeToString(random[:]), nil
}

// self is the API server of a host that has none: nobody can take its grant back.
type self struct{}

// ApplyStatus implements accept.API.
func (self) ApplyStatus(context.Context, v1alpha1.MachineStatus, string) (*v1alpha1.Machine, error) {
	return &v1alpha1.Machine{}, nil
}

// Last is the newest operation for an assignment that has an outcome; false for none.
func (a *Applier) Last(assignmentID string) (Outcome, bool) {
	records, _ := a.Store.Operations() // what cannot be read tells nothing
	for i := len(records) - 1; i >= 0; i-- {
		if r := records[i]; r.Finished() && r.Operation.Plan.AssignmentID == assignmentID {
			return OutcomeOf(r), true
		}
	}
	return Outcome{}, false
}
