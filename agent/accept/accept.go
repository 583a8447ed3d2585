package accept

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Records is where the steps of an acceptance are written down.
type Records interface {
	SaveIntent(intent store.Intent) error
	DropIntent(grantID string) error
	SaveOperation(op upgrade.Operation) error
}

// API writes the agent's part of the status.
type API interface {
	ApplyStatus(ctx context.Context, status v1alpha1.MachineStatus, resourceVersion string) (*v1alpha1.Machine, error)
}

// Acceptor carries an acceptance out.
type Acceptor struct {
	Records Records
	API     API
}

// Request is one acceptance.
type Request struct {
	Operation upgrade.Operation
	BootID    string
	// Status is the agent's whole part of the status, with the acceptance in it.
	Status v1alpha1.MachineStatus
	// ResourceVersion carried the grant.
	ResourceVersion string
}

// Accept writes the intent, the acceptance, and the operation, in this order. After an
// error other than a conflict the acceptance may have arrived or not: read the Machine
// and decide again. Nothing is started here.
func (a Acceptor) Accept(ctx context.Context, r Request) (*v1alpha1.Machine, error) {
	intent := store.Intent{BootID: r.BootID, Operation: r.Operation}
	if err := a.Records.SaveIntent(intent); err != nil {
		return nil, fmt.Errorf("recording the intent to accept grant %s: %w", r.Operation.ID, err)
	}
	machine, err := a.API.ApplyStatus(ctx, r.Status, r.ResourceVersion)
	if apierrors.IsConflict(err) {
		// It certainly did not arrive. The intent must go: were this grant accepted by
		// other hands later, it would pass for ours.
		if dropErr := a.Records.DropIntent(r.Operation.ID); dropErr != nil {
			return nil, fmt.Errorf("forgetting the intent to accept grant %s: %w", r.Operation.ID, dropErr)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("accepting grant %s: %w", r.Operation.ID, err)
	}
	// Only now is it certain that the coordinator cannot take the slot back.
	if err := a.Records.SaveOperation(r.Operation); err != nil {
		return machine, fmt.Errorf("handing operation %s to the executor: %w", r.Operation.ID, err)
	}
	return machine, nil
}

func validID(id string) bool { return journal.ValidID(id) }
