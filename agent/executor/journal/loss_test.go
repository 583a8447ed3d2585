package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/journal/journaltest"
	"github.com/refit-dev/refit/agent/host/hostfake"
)

// After every effect on the disk the power goes, and every state that this could leave is
// looked at: there is the record that was last acknowledged, or the one that was being
// written, whole, and it is listed as open for as long as it is.
func TestAPowerLossLeavesWhatWasAcknowledgedOrWhatWasBeingWritten(t *testing.T) {
	states, faults := losses(t, func(*journaltest.FS) {})
	assert.Empty(t, faults)
	assert.Greater(t, states, 300)
	t.Logf("%d states after a power loss", states)
}

// What says so above would say otherwise without each of the two kinds of sync.
func TestWithoutASyncAPowerLossIsNoticed(t *testing.T) {
	for name, tc := range map[string]struct {
		tune func(*journaltest.FS)
		says string
	}{
		"of files":       {func(f *journaltest.FS) { f.NoSync = true }, "cannot be trusted"},
		"of directories": {func(f *journaltest.FS) { f.NoSyncDir = true }, "was acknowledged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := losses(t, tc.tune)
			require.NotEmpty(t, faults)
			assert.True(t, slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, tc.says) }), faults[0])
		})
	}
}

// enough faults to tell what is wrong.
const enough = 50

// losses runs a whole life of a journal up to each point, and says what is wrong with what power losses leave.
func losses(t *testing.T, tune func(*journaltest.FS)) (states int, faults []string) {
	t.Helper()
	count := &hostfake.Faults{}
	require.NoError(t, write(journal.NewStoreFS("/var/lib/refit", journaltest.New(count))))
	for at := 1; at <= count.Points() && len(faults) < enough; at++ {
		fsys := journaltest.New(&hostfake.Faults{CrashAt: at}).Have("/var/lib")
		tune(fsys)
		var acknowledged *journal.Record
		where, crashed := hostfake.Crashes(func() {
			_ = writeTelling(journal.NewStoreFS("/var/lib/refit", fsys), func(r journal.Record) { acknowledged = &r })
		})
		require.True(t, crashed)
		for _, left := range fsys.Survivors() {
			states++
			if err := judge(journal.NewStoreFS("/var/lib/refit", left), acknowledged); err != nil {
				faults = append(faults, fmt.Sprintf("point %d, %s: %v: %v", at, where, err, left.Names()))
			}
		}
	}
	return states, faults
}

// judge says whether a store still has what was acknowledged.
func judge(s *journal.Store, acknowledged *journal.Record) error {
	r, err := s.Read("g1")
	open, listErr := s.ListOpen()
	switch {
	case listErr != nil:
		return listErr
	case errors.Is(err, fs.ErrNotExist) && acknowledged == nil:
		return nil
	case err != nil:
		return errors.Join(errors.New("a record was acknowledged"), err)
	case !r.Finished() && len(open) != 1:
		return errors.New("an open record is not listed, though it was acknowledged or is being written")
	case acknowledged == nil || text(r) == text(*acknowledged):
		return nil
	}
	if progress(r) < progress(*acknowledged) {
		return fmt.Errorf("step %d, but step %d was acknowledged", progress(r), progress(*acknowledged))
	}
	return nil
}

func text(r journal.Record) string {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// progress grows with every write of a record.
func progress(r journal.Record) int {
	n := 0
	if r.Baseline != nil {
		n++
	}
	if r.RollingBack {
		n += 100
	}
	if r.Finished() {
		n += 1000
	}
	for _, s := range slices.Concat(r.Steps, r.Rollback) {
		n += map[journal.StepState]int{journal.StepBegun: 1, journal.StepDone: 2, journal.StepFailed: 2, journal.StepUndone: 2}[s.State]
	}
	return n
}

// A filesystem in memory that kept too much would find nothing.
func TestWhatSurvivesIsWhatAFilesystemPromises(t *testing.T) {
	fsys := journaltest.New(nil)
	require.NoError(t, fsys.MkdirAll("/s", 0o700))
	require.NoError(t, fsys.SyncDir("/"))
	f, err := fsys.Create("/s/a", 0o600)
	require.NoError(t, err)
	_, err = f.Write([]byte("content"))
	require.NoError(t, err)
	left := func() map[string]bool {
		found := map[string]bool{}
		for _, s := range fsys.Survivors() {
			data, err := s.ReadFile("/s/a")
			if err != nil {
				data = []byte("no file")
			}
			found[string(data)] = true
		}
		return found
	}
	zeros := string(make([]byte, len("content")))
	assert.Equal(t, map[string]bool{"no file": true, "": true, "con": true, "conten": true, "content": true, zeros: true}, left())
	require.NoError(t, f.Sync())
	assert.Equal(t, map[string]bool{"no file": true, "content": true}, left())
	require.NoError(t, fsys.SyncDir("/s"))
	assert.Equal(t, map[string]bool{"content": true}, left())
	require.NoError(t, fsys.Remove("/s/a"))
	assert.Equal(t, map[string]bool{"no file": true, "content": true}, left())
	require.NoError(t, fsys.SyncDir("/s"))
	assert.Equal(t, map[string]bool{"no file": true}, left())
}
