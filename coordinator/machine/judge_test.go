package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/coordinator/board"
)

func TestOverriddenFieldsAreReleasedWithACommandThatExists(t *testing.T) {
	for name, tc := range map[string]struct {
		fields []string
		want   string
	}{
		"a field": {
			[]string{"spec.versions.kubelet"},
			`kubectl patch machine w2 -n refit --type json -p '[{"op":"remove","path":"/spec/versions/kubelet"}]'`,
		},
		"two fields": {
			[]string{"spec.paused", "spec.versions.kubelet"},
			`kubectl patch machine w2 -n refit --type json -p '[{"op":"remove","path":"/spec/paused"},{"op":"remove","path":"/spec/versions/kubelet"}]'`,
		},
		"an item of a list, which a patch cannot name": {
			[]string{"spec.paused", `spec.os.packages[name="openssl"].version`},
			"kubectl edit machine w2 -n refit, and remove them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var overrides []board.Override
			for _, field := range tc.fields {
				overrides = append(overrides, board.Override{Field: field, Manager: "kubectl-edit"})
			}
			assert.Equal(t, tc.want, releaseCommand(types.NamespacedName{Namespace: "refit", Name: "w2"}, overrides))
		})
	}
}
