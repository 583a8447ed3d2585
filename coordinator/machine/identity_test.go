package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// Whoever may renew a token is the one whose token it is, and nobody is let in whom the identity does not name.
func TestARoleIsGivenToTheIdentityOfTheAgentsAlone(t *testing.T) {
	key := types.NamespacedName{Namespace: "refit", Name: "w1"}
	for identity, want := range map[Identity][]string{
		"":                     {"User /system:node:w1"},
		IdentityNode:           {"User /system:node:w1"},
		IdentityServiceAccount: {"ServiceAccount refit/refit-machine-w1"},
		IdentityBoth:           {"User /system:node:w1", "ServiceAccount refit/refit-machine-w1"},
	} {
		var got []string
		for _, s := range identity.subjects(key) {
			got = append(got, s.Kind+" "+s.Namespace+"/"+s.Name)
		}
		assert.Equal(t, want, got, identity)
		tokens := 0
		for _, rule := range identity.rules("w1", false) {
			assert.Len(t, rule.ResourceNames, 1, "%s: %v", identity, rule)
			if rule.Resources[0] == "serviceaccounts/token" {
				tokens++
				assert.Equal(t, []string{"refit-machine-w1"}, rule.ResourceNames)
				assert.Equal(t, []string{"create"}, rule.Verbs)
			}
		}
		assert.Equal(t, identity.ServiceAccount(), tokens == 1, identity)
	}
	assert.Error(t, Identity("node").Validate())
}

// Only a host for which no kubelet speaks says so itself, and it makes no Lease: a right to make one is a right to make any.
func TestALeaseOfItsOwnIsForAHostWithoutANode(t *testing.T) {
	for _, beats := range []bool{true, false} {
		leases := 0
		for _, rule := range IdentityBoth.rules("e1", beats) {
			if rule.Resources[0] == "leases" {
				leases++
				assert.Equal(t, []string{"coordination.k8s.io"}, rule.APIGroups)
				assert.Equal(t, []string{"refit-machine-e1"}, rule.ResourceNames)
				assert.Equal(t, []string{"patch"}, rule.Verbs)
			}
		}
		assert.Equal(t, beats, leases == 1)
	}
}
