package machine

import (
	"context"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// access gives the Machine its finalizer and the host's credential its one object:
// read this Machine, write its status, nothing else.
func (r *Reconciler) access(ctx context.Context, s *scope) (outcome, error) {
	if !s.machine.DeletionTimestamp.IsZero() {
		return goOn, nil
	}
	if !controllerutil.ContainsFinalizer(s.read, v1alpha1.FinalizerMachine) {
		m := s.read.DeepCopy()
		controllerutil.AddFinalizer(m, v1alpha1.FinalizerMachine)
		if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(s.read, client.MergeFromWithOptimisticLock{})); err != nil {
			return stop, wrapMachine(s, "adding the finalizer", err)
		}
		return stop, nil // the change itself brings the next pass
	}
	if r.hasAccess(ctx, s) {
		return goOn, nil
	}
	if r.identity(s).ServiceAccount() {
		if err := r.ensureServiceAccount(ctx, s); err != nil {
			return stop, wrapMachine(s, "writing the ServiceAccount", err)
		}
	}
	if err := r.ensureRole(ctx, s); err != nil {
		return stop, wrapMachine(s, "writing the Role", err)
	}
	return goOn, wrapMachine(s, "writing the RoleBinding", r.ensureRoleBinding(ctx, s))
}

// hasAccess says that everything is there as it is to be, which it is in nearly every pass. What
// is read for that is the cache's own, and whatever it says, only what follows writes.
func (r *Reconciler) hasAccess(ctx context.Context, s *scope) bool {
	var (
		key     = types.NamespacedName{Namespace: s.key.Namespace, Name: AccessName(s.key.Name)}
		account corev1.ServiceAccount
		role    rbacv1.Role
		binding rbacv1.RoleBinding
	)
	there := func(o client.Object) bool {
		return r.Client.Get(ctx, key, o, client.UnsafeDisableDeepCopy) == nil && metav1.IsControlledBy(o, s.machine)
	}
	if r.identity(s).ServiceAccount() && (!there(&account) || account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken) {
		return false
	}
	return there(&role) && slices.EqualFunc(role.Rules, r.identity(s).rules(s.key.Name, !s.view.NeedsNode()), sameRule) &&
		there(&binding) && slices.Equal(binding.Subjects, r.identity(s).subjects(s.key)) && binding.RoleRef == roleRef(s.key.Name)
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

func roleRef(machine string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: AccessName(machine)}
}

// identity of the agent of a machine: one without a Node has no kubelet whose certificate it could come with.
func (r *Reconciler) identity(s *scope) Identity {
	if !s.view.NeedsNode() {
		return IdentityServiceAccount
	}
	return r.Identity
}

// AccessName is the name of a machine's Role, RoleBinding and ServiceAccount.
func AccessName(machine string) string { return "refit-machine-" + machine }

// ensureServiceAccount makes the account whose token the agent carries. One that a person
// has deleted is made anew, with another uid: every token of the old one is void.
func (r *Reconciler) ensureServiceAccount(ctx context.Context, s *scope) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: AccessName(s.key.Name)}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, account, func() error {
		never := false // no pod runs as a host
		account.AutomountServiceAccountToken = &never
		return ctrl.SetControllerReference(s.machine, account, r.Client.Scheme())
	})
	return err //nolint:wrapcheck // wrapped by the caller
}

func (r *Reconciler) ensureRole(ctx context.Context, s *scope) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: AccessName(s.key.Name)}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, role, func() error {
		role.Rules = r.identity(s).rules(s.key.Name, !s.view.NeedsNode())
		return ctrl.SetControllerReference(s.machine, role, r.Client.Scheme())
	})
	return err //nolint:wrapcheck // wrapped by the caller
}

func (r *Reconciler) ensureRoleBinding(ctx context.Context, s *scope) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: AccessName(s.key.Name)}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, binding, func() error {
		binding.Subjects = r.identity(s).subjects(s.key)
		binding.RoleRef = roleRef(s.key.Name)
		return ctrl.SetControllerReference(s.machine, binding, r.Client.Scheme())
	})
	return err //nolint:wrapcheck // wrapped by the caller
}
