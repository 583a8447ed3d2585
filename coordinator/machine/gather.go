package machine

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gather reads what a pass needs: the ledger live, and the Machine live as well once
// the handshake is under way, so that no step is taken on a reading that is older than
// the ledger. A Machine that is gone yields nil.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	if err := r.Ledger.Lead(ctx, key.Namespace); err != nil {
		return nil, fmt.Errorf("leading namespace %s: %w", key.Namespace, err)
	}
	m := &v1alpha1.Machine{}
	if err := r.Client.Get(ctx, key, m, client.UnsafeDisableDeepCopy); err != nil { // it is only read
		return nil, client.IgnoreNotFound(err) //nolint:wrapcheck // says which object already
	}
	if l := r.Ledger.Last(key.Namespace); l != nil && atRest(l, m) {
		if s, err := r.newScope(ctx, key, m, l); err != nil || !s.node().Marked() {
			return s, err
		}
	}
	l, err := r.Ledger.Read(ctx, key.Namespace)
	if apierrors.IsNotFound(err) {
		r.Ledger.Forget(key.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("gathering for Machine %s: %w", key, err)
	}
	if fleet.SlotOf(&l.Spec, m) != nil || m.Status.Grant != nil {
		m = &v1alpha1.Machine{}
		if err := r.Live.Get(ctx, key, m); err != nil {
			return nil, client.IgnoreNotFound(err) //nolint:wrapcheck // says which object already
		}
		if ledger.Lost(m, fleet.SlotOf(&l.Spec, m)) {
			r.Ledger.Forget(key.Namespace)
			return nil, fmt.Errorf("the ledger has lost the slot of Machine %s, and is taken over anew: %w", key, ledger.ErrChanged)
		}
	}
	return r.newScope(ctx, key, m, l)
}

// atRest says that nothing of the handshake is in the Machine or the ledger, so that no
// reading has to be fresher than these: what is written then is its status alone, and that
// on condition that the Machine is as it was read.
func atRest(l *v1alpha1.Ledger, m *v1alpha1.Machine) bool {
	return fleet.SlotOf(&l.Spec, m) == nil && m.Status.Grant == nil && m.DeletionTimestamp.IsZero()
}

func (r *Reconciler) newScope(ctx context.Context, key types.NamespacedName, m *v1alpha1.Machine, l *v1alpha1.Ledger) (*scope, error) {
	deployments := &v1alpha1.MachineDeploymentList{}
	if err := r.Client.List(ctx, deployments, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	objects := fleet.Objects{
		Machines: []v1alpha1.Machine{*m.DeepCopy()}, Deployments: deployments.Items, Ledger: ownLedger(l, m), Now: r.Now(), Partial: true,
	}
	node := &corev1.Node{}
	switch err := r.Nodes.Get(ctx, types.NamespacedName{Name: key.Name}, node, client.UnsafeDisableDeepCopy); {
	case err == nil:
		objects.Nodes = []corev1.Node{*node}
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading Node %s: %w", key.Name, err)
	}
	f, err := fleet.Build(objects)
	if err != nil {
		return nil, fmt.Errorf("gathering for Machine %s: %w", key, err)
	}
	view := f.Machines[0]
	s := &scope{key: key, read: m, machine: view.Machine, view: view, fleet: f}
	s.wishMet, _, s.difference = upgrade.UpToDate(m.Spec, m.Status)
	s.seeRoles()
	return s, nil
}

// ownLedger is the ledger as far as it is about the machine. The slot is a copy, which the pass may change.
func ownLedger(l *v1alpha1.Ledger, m *v1alpha1.Machine) v1alpha1.LedgerSpec {
	out := v1alpha1.LedgerSpec{Epoch: l.Spec.Epoch, Stopped: l.Spec.Stopped}
	if slot := fleet.SlotOf(&l.Spec, m); slot != nil {
		out.Slots = []v1alpha1.Slot{*slot.DeepCopy()}
	}
	return out
}

// seeRoles holds a machine whose roles do not name its control plane, whatever it wishes
// for, and also where only its Node says so. One at work has its work ended first.
func (s *scope) seeRoles() {
	if mismatch := s.fleet.State(s.key.Name).RoleMismatch(); mismatch != nil && s.slot() == nil {
		s.wishMet, s.blocked, s.difference = false, mismatch, mismatch.Message
	}
}
