package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/pkg/drain"
)

func withGrace(seconds int64) podOption {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func TestAForecastSaysWhatADrainWouldMeetAndEvictsNothing(t *testing.T) {
	closed := budget("web", "held", 0, 1)
	closed.Status.DesiredHealthy = 2
	c := newCluster(t,
		pod("free", withGrace(30)), pod("held", withGrace(10), withPriority(-1)), pod("storage", withGrace(5), withOrder("100")),
		pod("leaving", leavingSince(0), withPriority(7)), closed, budget("roomy", "free", 1, 2))
	f, err := drain.New(c, drain.Options{}).Forecast(t.Context(), node)
	require.NoError(t, err)
	assert.Nil(t, f.Blocked)
	assert.Equal(t, 35*time.Second, f.Least)
	require.Len(t, f.Pods, 4)
	var names []string
	for _, p := range f.Pods {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"held", "free", "leaving", "storage"}, names, "as they would go")
	held, free := f.Pods[0], f.Pods[1]
	assert.Equal(t, drain.ReasonEvictionBlocked, held.Reason)
	assert.Contains(t, held.Message, "it can never allow one")
	assert.True(t, held.Lasting)
	assert.Equal(t, []string{"web"}, held.PDBs)
	assert.Empty(t, free.Reason)
	assert.Equal(t, []string{"roomy"}, free.PDBs)
	assert.True(t, f.Pods[2].Leaving)
	assert.Equal(t, 100, f.Pods[3].Order)
	assert.Zero(t, c.allTries())
}

func TestAForecastOfADrainThatWouldBeRefusedSaysWhy(t *testing.T) {
	f, err := drain.New(newCluster(t, pod("a", bare)), drain.Options{}).Forecast(t.Context(), node)
	require.NoError(t, err)
	require.NotNil(t, f.Blocked)
	assert.Equal(t, drain.ReasonUnmanagedPods, f.Blocked.Reason)
	assert.Empty(t, f.Pods)
}
