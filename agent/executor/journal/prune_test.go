package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/journal/journaltest"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// history is a host with six ended operations and one that is open, and what else it keeps of them.
func history(t *testing.T) (*journal.Store, *hostfake.Faults, map[string]bool) {
	t.Helper()
	faults := &hostfake.Faults{}
	s := journal.NewStoreFS("/state", journaltest.New(faults))
	kept, clock := map[string]bool{}, time.Unix(0, 0)
	now := func() time.Time { clock = clock.Add(time.Minute); return clock }
	for i := range 7 {
		id := fmt.Sprintf("g%d", i)
		j, err := s.Create(upgrade.Operation{ID: id}, "boot-1", now)
		require.NoError(t, err)
		kept[id] = true
		if i > 0 { // the oldest of all is the open one
			require.NoError(t, j.Succeed())
		}
	}
	return s, faults, kept
}

// A crash anywhere leaves no operation that looks as if it had yet to begin, and none
// whose id is forgotten; the next run gets to the same end.
func TestPruningMayBeCutOffAnywhere(t *testing.T) {
	s, faults, _ := history(t)
	begin := faults.Points()
	require.NoError(t, s.Prune(2, func(string) error { return nil }))
	require.Greater(t, faults.Points(), begin)
	for at := begin; at <= faults.Points(); at++ {
		s, faults, kept := history(t)
		forget := func(id string) error { delete(kept, id); return nil }
		faults.CrashAt = at
		where, _ := hostfake.Crashes(func() { _ = s.Prune(2, forget) })
		faults.CrashAt = 0
		for id := range kept {
			_, err := s.Read(id)
			require.NoError(t, err, "%s: %s is kept and has no journal", where, id)
		}
		require.NoError(t, s.Prune(2, forget), where)
		records, err := s.List()
		require.NoError(t, err)
		var ids []string
		for _, r := range records {
			ids = append(ids, r.Operation.ID)
		}
		assert.Equal(t, []string{"g0", "g5", "g6"}, ids, where)
		ended, err := s.Ended()
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"g1", "g2", "g3", "g4"}, ended, where)
	}
}
