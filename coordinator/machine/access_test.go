package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Whatever is changed in what a host's credential may do is put right by the next pass.
func TestAccessIsWrittenAgainWhereItIsNotAsItIsToBe(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "fleet", Name: AccessName("w1")}
	for name, change := range map[string]func(t *testing.T, c client.Client){
		"a verb more": func(t *testing.T, c client.Client) {
			role := &rbacv1.Role{ObjectMeta: meta}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(role), role))
			role.Rules[0].Verbs = append(role.Rules[0].Verbs, "delete")
			require.NoError(t, c.Update(t.Context(), role))
		},
		"another object": func(t *testing.T, c client.Client) {
			role := &rbacv1.Role{ObjectMeta: meta}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(role), role))
			role.Rules[1].ResourceNames = nil
			require.NoError(t, c.Update(t.Context(), role))
		},
		"a rule more": func(t *testing.T, c client.Client) {
			role := &rbacv1.Role{ObjectMeta: meta}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(role), role))
			role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/"}})
			require.NoError(t, c.Update(t.Context(), role))
		},
		"nobody owns it": func(t *testing.T, c client.Client) {
			role := &rbacv1.Role{ObjectMeta: meta}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(role), role))
			role.OwnerReferences = nil
			require.NoError(t, c.Update(t.Context(), role))
		},
		"a subject more": func(t *testing.T, c client.Client) {
			binding := &rbacv1.RoleBinding{ObjectMeta: meta}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "somebody"})
			require.NoError(t, c.Update(t.Context(), binding))
		},
		"the binding is gone": func(t *testing.T, c client.Client) {
			require.NoError(t, c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta}))
		},
		"the account is mounted into pods": func(t *testing.T, c client.Client) {
			account := &corev1.ServiceAccount{ObjectMeta: meta}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(account), account))
			account.AutomountServiceAccountToken = nil
			require.NoError(t, c.Update(t.Context(), account))
		},
		"the account is gone": func(t *testing.T, c client.Client) {
			require.NoError(t, c.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			scheme := runtime.NewScheme()
			require.NoError(t, clientgoscheme.AddToScheme(scheme))
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			c := fake.NewClientBuilder().WithScheme(scheme).Build()
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1", UID: "1", Finalizers: []string{v1alpha1.FinalizerMachine}}}
			m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
			s := &scope{key: types.NamespacedName{Namespace: "fleet", Name: "w1"}, read: m, machine: m, view: &fleet.Machine{Machine: m}}
			r := &Reconciler{Client: c, Identity: IdentityBoth}
			assert.False(t, r.hasAccess(ctx, s), "nothing is there yet")
			next, err := r.access(ctx, s)
			require.NoError(t, err)
			require.Equal(t, goOn, next)
			require.True(t, r.hasAccess(ctx, s))

			change(t, c)
			assert.False(t, r.hasAccess(ctx, s))
			_, err = r.access(ctx, s)
			require.NoError(t, err)
			assert.True(t, r.hasAccess(ctx, s))
		})
	}
}
