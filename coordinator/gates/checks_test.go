package gates_test

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyFreshAnswersThatPassLetAMachineGo(t *testing.T) {
	passed := func(ago time.Duration) fleet.CheckOutcome {
		return fleet.CheckOutcome{State: fleet.CheckPassed, At: Now.Add(-ago)}
	}
	said := func(state fleet.CheckState) fleet.CheckOutcome {
		return fleet.CheckOutcome{State: state, Message: "so it is", At: Now}
	}
	ended := func(ago time.Duration) Edit {
		return Of(func(m *v1alpha1.Machine) {
			m.Status.History = []v1alpha1.HistoryEntry{{EndTime: &metav1.Time{Time: Now.Add(-ago)}}, {EndTime: &metav1.Time{Time: Now.Add(-ago - time.Hour)}}}
		})
	}
	nobody := Of(func(*v1alpha1.Machine) {})
	for name, tc := range map[string]struct {
		answers map[string]fleet.CheckOutcome
		before  Edit // of the machine next to it
		reason  string
		says    string
	}{
		"both passed":                    {map[string]fleet.CheckOutcome{"a": passed(0), "b": passed(30 * time.Second)}, nobody, "", ""},
		"nothing is known":               {nil, nobody, gates.ReasonCheckUnknown, `check "a" of MachineDeployment w has not been answered`},
		"one is not known":               {map[string]fleet.CheckOutcome{"a": passed(0)}, nobody, gates.ReasonCheckUnknown, `check "b"`},
		"one is old":                     {map[string]fleet.CheckOutcome{"a": passed(0), "b": passed(31 * time.Second)}, nobody, gates.ReasonCheckUnknown, `check "b"`},
		"one fails":                      {map[string]fleet.CheckOutcome{"a": passed(0), "b": said(fleet.CheckFailed)}, nobody, gates.ReasonCheckFailed, "so it is"},
		"one could not be asked":         {map[string]fleet.CheckOutcome{"a": said(fleet.CheckUnknown), "b": passed(0)}, nobody, gates.ReasonCheckUnknown, "so it is"},
		"one can never be":               {map[string]fleet.CheckOutcome{"a": passed(0), "b": said(fleet.CheckInvalid)}, nobody, gates.ReasonCheckInvalid, "so it is"},
		"an operation ended before":      {map[string]fleet.CheckOutcome{"a": passed(0), "b": passed(4 * time.Second)}, ended(5 * time.Second), "", ""},
		"an operation ended since":       {map[string]fleet.CheckOutcome{"a": passed(0), "b": passed(6 * time.Second)}, ended(5 * time.Second), gates.ReasonCheckUnknown, `check "b"`},
		"or in the very second":          {map[string]fleet.CheckOutcome{"a": passed(0), "b": passed(5 * time.Second)}, ended(5 * time.Second), gates.ReasonCheckUnknown, `check "b"`},
		"an answer without a state that": {map[string]fleet.CheckOutcome{"a": passed(0), "b": {At: Now}}, nobody, gates.ReasonCheckUnknown, `check "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := New().Machine("cp1", "", plane).Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) {
				r.Checks = []v1alpha1.Check{{Name: "a"}, {Name: "b"}}
			})).Machine("w1", "w", worker).Machine("w2", "w", worker, tc.before).Build()
			f.Find("w1").Checks = tc.answers
			v := gates.Check(f, f.Find("w1"))
			if tc.reason == "" {
				require.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason)
			assert.Contains(t, v.Message, tc.says)
		})
	}
}
