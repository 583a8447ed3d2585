package machinedeployment

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revise keeps the template's revision. The cache says whether something is to be written;
// what is, is decided on a live reading: a cache that lags would give a number away twice.
func (r *Reconciler) revise(ctx context.Context, s *scope) error {
	known, err := Revisions(ctx, r.Client, s.read)
	if err != nil {
		return err
	}
	if name := r.kept.current(s.deployment, known); name != "" {
		s.deployment.Status.CurrentRevision = name
		return nil
	}
	todo, err := record(s.deployment, s.pool, known)
	if err != nil {
		return err
	}
	if !todo.pending() {
		r.kept.keep(s.deployment, known, todo.current.Name)
	} else {
		if todo, err = r.recordIn(ctx, s, r.Live); err != nil {
			return err
		}
		if err := r.writeRevisions(ctx, todo); err != nil {
			return fmt.Errorf("keeping the revisions of MachineDeployment %s: %w", s.read.Name, err)
		}
	}
	s.deployment.Status.CurrentRevision = todo.current.Name
	return nil
}

func (r *Reconciler) recordIn(ctx context.Context, s *scope, from client.Reader) (records, error) {
	known, err := Revisions(ctx, from, s.read)
	if err != nil {
		return records{}, err
	}
	return record(s.deployment, s.pool, known)
}

// Revisions reads the revisions of a MachineDeployment, the oldest first.
func Revisions(ctx context.Context, from client.Reader, d *v1alpha1.MachineDeployment) ([]*appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := from.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the revisions of MachineDeployment %s: %w", d.Name, err)
	}
	return RevisionsOf(d, list.Items), nil
}

func (r *Reconciler) writeRevisions(ctx context.Context, todo records) error {
	if todo.create != nil {
		if err := r.Client.Create(ctx, todo.create); err != nil {
			return fmt.Errorf("creating ControllerRevision %s: %w", todo.create.Name, err)
		}
	}
	if todo.update != nil {
		if err := r.Client.Update(ctx, todo.update); err != nil {
			return fmt.Errorf("making ControllerRevision %s the newest: %w", todo.update.Name, err)
		}
	}
	for _, old := range todo.remove {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID})); err != nil {
			return fmt.Errorf("deleting ControllerRevision %s, which is beyond spec.revisionHistoryLimit: %w", old.Name, err)
		}
	}
	return nil
}
