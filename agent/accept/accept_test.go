package accept_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// recorder notes the order of effects and fails on demand.
type recorder struct {
	calls []string
	fail  map[string]error
}

func (r *recorder) do(call string) error {
	r.calls = append(r.calls, call)
	return r.fail[call]
}

func (r *recorder) SaveIntent(i store.Intent) error          { return r.do("intent " + i.Operation.ID) }
func (r *recorder) DropIntent(id string) error               { return r.do("drop " + id) }
func (r *recorder) SaveOperation(op upgrade.Operation) error { return r.do("operation " + op.ID) }
func (r *recorder) ApplyStatus(_ context.Context, _ v1alpha1.MachineStatus, version string) (*v1alpha1.Machine, error) {
	return &v1alpha1.Machine{}, r.do("apply at " + version)
}

func TestAcceptKeepsItsOrderWhateverFails(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "machines"}, "w1", errors.New("newer"))
	for name, tc := range map[string]struct {
		failing string
		err     error
		want    []string
	}{
		"all goes well":                   {"", nil, []string{"intent g1", "apply at 7", "operation g1"}},
		"the disk is full":                {"intent g1", errors.New("no space"), []string{"intent g1"}},
		"the grant was taken back":        {"apply at 7", conflict, []string{"intent g1", "apply at 7", "drop g1"}},
		"nobody knows whether it arrived": {"apply at 7", errors.New("reset"), []string{"intent g1", "apply at 7"}},
		"the operation cannot be written": {"operation g1", errors.New("no space"), []string{"intent g1", "apply at 7", "operation g1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{fail: map[string]error{tc.failing: tc.err}}
			a := accept.Acceptor{Records: r, API: r}
			_, err := a.Accept(t.Context(), accept.Request{Operation: upgrade.Operation{ID: "g1"}, ResourceVersion: "7"})
			assert.Equal(t, tc.want, r.calls)
			if tc.err == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tc.err)
		})
	}
}
