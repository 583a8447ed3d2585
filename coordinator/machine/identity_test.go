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
		for _, rule := range identity.rules("w1") {
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
