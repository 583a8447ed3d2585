package machine

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Identity says as whom the agents of hosts come. The zero value is IdentityNode.
type Identity string

// The identities.
const (
	// IdentityNode is the kubelet's client certificate: the user system:node:NAME. Only for
	// agents in the cluster of their own Nodes: elsewhere a Node of that name is another host.
	IdentityNode Identity = "Node"
	// IdentityServiceAccount is the ServiceAccount refit-machine-NAME beside the Machine.
	IdentityServiceAccount Identity = "ServiceAccount"
	// IdentityBoth takes either, such as while hosts go from one form of the agent to the other.
	IdentityBoth Identity = "Both"
)

// Validate says what is wrong with it.
func (i Identity) Validate() error {
	switch i {
	case "", IdentityNode, IdentityServiceAccount, IdentityBoth:
		return nil
	}
	return fmt.Errorf("%q: is one of %s, %s and %s", string(i), IdentityNode, IdentityServiceAccount, IdentityBoth)
}

// Node says whether the kubelet's certificate is taken.
func (i Identity) Node() bool { return i != IdentityServiceAccount }

// ServiceAccount says whether the ServiceAccount is.
func (i Identity) ServiceAccount() bool { return i == IdentityServiceAccount || i == IdentityBoth }

// rules are what an agent may do: with its one Machine, with its own token, and, where no kubelet
// speaks for the host, with its Lease.
func (i Identity) rules(machine string, beats bool) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"machines"}, ResourceNames: []string{machine}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"machines/status"}, ResourceNames: []string{machine}, Verbs: []string{"patch"}},
	}
	if beats {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{AccessName(machine)}, Verbs: []string{"patch"},
		})
	}
	if i.ServiceAccount() {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{AccessName(machine)}, Verbs: []string{"create"},
		})
	}
	return rules
}

// subjects are whom a machine's Role is given to.
func (i Identity) subjects(machine types.NamespacedName) []rbacv1.Subject {
	var out []rbacv1.Subject
	if i.Node() {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + machine.Name})
	}
	if i.ServiceAccount() {
		out = append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: machine.Namespace, Name: AccessName(machine.Name)})
	}
	return out
}
