package facts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/kubelet"
	"github.com/refit-dev/refit/agent/host/systemd"
)

// A kubelet that fails at its start is started again for ever: met in between, it has a process.
func TestAKubeletThatIsStartedAgainAndAgainDoesNotRun(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	met := systemd.Status{Unit: kubelet.Unit, LoadState: "loaded", ActiveState: "active", MainPID: 7, Restarts: 3}
	other := met
	other.MainPID = 8
	for name, tc := range map[string]struct {
		change func(s *systemd.Status)
		later  systemd.Status
		pid    uint32
		active string
	}{
		"its process has ended since":               {func(*systemd.Status) {}, systemd.Status{ActiveState: "activating"}, 0, "activating"},
		"it has another process since":              {func(*systemd.Status) {}, other, 0, "activating"},
		"it has come to stay":                       {func(*systemd.Status) {}, met, 7, "active"},
		"nobody had to start it again":              {func(s *systemd.Status) { s.Restarts = 0 }, other, 7, "active"},
		"it was started again, and long ago":        {func(s *systemd.Status) { s.StartTime = &old }, other, 7, "active"},
		"it waits for the next start, and has none": {func(s *systemd.Status) { s.MainPID, s.ActiveState = 0, "activating" }, other, 0, "activating"},
	} {
		t.Run(name, func(t *testing.T) {
			now, young := met, time.Now().Add(500*time.Millisecond-startFails)
			now.StartTime = &young
			tc.change(&now)
			g := &gathering{Prober: &Prober{Units: units{known: map[string]systemd.Status{kubelet.Unit: tc.later}}}}
			got, err := g.beyondItsStart(t.Context(), now)
			require.NoError(t, err)
			assert.Equal(t, tc.pid, got.MainPID)
			assert.Equal(t, tc.active, got.ActiveState)
		})
	}
}
