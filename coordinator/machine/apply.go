package machine

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager owns the coordinator's part of a Machine's status.
const FieldManager = "refit-coordinator"

// ownedStatus are the fields of MachineStatus that the coordinator writes, all of
// them each time: server-side apply removes what is left out.
type ownedStatus struct {
	NodeRef        *v1alpha1.NodeRef        `json:"nodeRef,omitempty"`
	Assignment     *v1alpha1.Assignment     `json:"assignment,omitempty"`
	Grant          *v1alpha1.Grant          `json:"grant,omitempty"`
	Role           string                   `json:"role,omitempty"`
	Phase          v1alpha1.Phase           `json:"phase,omitempty"`
	RolloutFailure *v1alpha1.RolloutFailure `json:"rolloutFailure,omitempty"`
	ObservedRetry  string                   `json:"observedRetry,omitempty"`
	History        []v1alpha1.HistoryEntry  `json:"history,omitempty"`
	Conditions     []metav1.Condition       `json:"conditions,omitempty"`
}

func owned(s *v1alpha1.MachineStatus) ownedStatus {
	return ownedStatus{
		NodeRef: s.NodeRef, Assignment: s.Assignment, Grant: s.Grant, Role: s.Role, Phase: s.Phase,
		RolloutFailure: s.RolloutFailure, ObservedRetry: s.ObservedRetry, History: s.History,
		Conditions: status.OfCoordinator(s.Conditions),
	}
}

// writeStatus applies the coordinator's fields if they differ from what was read. The
// resourceVersion makes the write conditional: what was decided on an older reading is
// refused with a conflict, and decided again.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	want := owned(&s.machine.Status)
	if s.unsaid || equality.Semantic.DeepEqual(owned(&s.read.Status), want) {
		return nil
	}
	object, err := applyConfiguration(s.read, want)
	if err != nil {
		return err
	}
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(FieldManager), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err) && !s.read.DeletionTimestamp.IsZero():
		return nil // its finalizer went in this very pass, and it with that
	case err != nil:
		return fmt.Errorf("writing the status of Machine %s: %w", s.read.Name, err)
	}
	return nil
}

func applyConfiguration(read *v1alpha1.Machine, want ownedStatus) (*unstructured.Unstructured, error) {
	fields, err := status.Fields(want)
	if err != nil {
		return nil, fmt.Errorf("the status of Machine %s: %w", read.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Machine"))
	u.SetNamespace(read.Namespace)
	u.SetName(read.Name)
	u.SetUID(read.UID)
	u.SetResourceVersion(read.ResourceVersion)
	return u, nil
}
