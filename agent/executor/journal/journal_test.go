package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/journal/journaltest"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func operation(id string) upgrade.Operation {
	return upgrade.Operation{ID: id, Machine: "w1", Plan: upgrade.Plan{Hash: "sha256:0", Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight},
		{Kind: upgrade.StepUnholdPackages, Packages: []upgrade.PackageChange{{Name: "kubelet"}}},
		{Kind: upgrade.StepRestartUnit, Unit: "kubelet.service"},
		{Kind: upgrade.StepVerify},
	}}}
}

func clock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Second); return now }
}

var undo = journal.Undo{Steps: []upgrade.Step{{Kind: upgrade.StepHoldPackages, Packages: []upgrade.PackageChange{{Name: "kubelet"}}}}}

// write is a whole life of a journal: two steps, a failure, a rollback.
func write(s *journal.Store) error { return writeTelling(s, func(journal.Record) {}) }

// writeTelling tells of each record that was acknowledged.
func writeTelling(s *journal.Store, tell func(journal.Record)) error {
	j, err := s.Create(operation("g1"), "boot-1", clock())
	if err != nil {
		return err
	}
	tell(j.Record())
	for _, change := range []func() error{
		func() error { return j.SetBaseline(journal.Baseline{Kubelet: "v1.36.3", Holds: []string{"kubelet"}}) },
		func() error { return j.Begin(0, "boot-1", journal.Undo{}) },
		func() error { return j.Done(0, "") },
		func() error { return j.Begin(1, "boot-1", undo) },
		func() error { return j.Done(1, "") },
		func() error { return j.Begin(2, "boot-1", journal.Undo{}) },
		func() error {
			return j.Turn(2, journal.Cause{Step: upgrade.StepRestartUnit, Reason: "UnitNotActive", Message: "it is down"}, undo.Steps, nil)
		},
		func() error { return j.BeginRollback(0, "boot-1") },
		func() error { return j.DoneRollback(0, "") },
		func() error { return j.Fail("UnitNotActive", "it is down; rolled back", true) },
	} {
		if err := change(); err != nil {
			return err
		}
		tell(j.Record())
	}
	return nil
}

func TestARecordSurvivesItsFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, write(journal.NewStore(dir)))
	r, err := journal.Read(dir, "g1")
	require.NoError(t, err)
	assert.Equal(t, operation("g1"), r.Operation)
	assert.Equal(t, journal.Failed, r.State)
	assert.True(t, r.RolledBack)
	assert.Equal(t, "UnitNotActive", r.Reason)
	assert.Equal(t, []journal.StepState{journal.StepDone, journal.StepUndone, journal.StepFailed, journal.StepPending}, states(r.Steps))
	assert.Equal(t, undo.Steps, r.Steps[1].Undo)
	assert.Equal(t, time.Second, r.Steps[1].Duration())
	assert.Equal(t, &journal.Baseline{Kubelet: "v1.36.3", Holds: []string{"kubelet"}}, r.Baseline)
	open, err := journal.ListOpen(dir)
	require.NoError(t, err)
	assert.Empty(t, open)
}

func states(steps []journal.StepRecord) []journal.StepState {
	var out []journal.StepState
	for _, s := range steps {
		out = append(out, s.State)
	}
	return out
}

// At each crash point, with and without the loss of what was not synced, the record is
// one of those that were written, and it is listed as open for as long as it is.
func TestACrashLeavesTheRecordBeforeOrAfterTheWrite(t *testing.T) {
	for _, loss := range []bool{false, true} {
		count := &hostfake.Faults{}
		require.NoError(t, write(journal.NewStoreFS("/s", journaltest.New(count))))
		for at := 1; at <= count.Points(); at++ {
			faults := &hostfake.Faults{CrashAt: at}
			fsys := journaltest.New(faults)
			where, crashed := hostfake.Crashes(func() { _ = write(journal.NewStoreFS("/s", fsys)) })
			require.True(t, crashed)
			if loss {
				fsys.PowerLoss()
			}
			store := journal.NewStoreFS("/s", fsys)
			r, err := store.Read("g1")
			open, listErr := store.ListOpen()
			require.NoError(t, listErr)
			if errors.Is(err, fs.ErrNotExist) {
				require.Empty(t, open, where)
				continue
			}
			require.NoError(t, err, where)
			require.Equal(t, r.Finished(), len(open) == 0, where)
			require.NoError(t, store.Sweep())
			require.Equal(t, r.Finished(), !contains(fsys.Names(), "/s/open/g1"), where)
		}
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// A write that fails, as on a full disk, changes nothing: neither on disk nor in memory.
func TestAFailedWriteChangesNothing(t *testing.T) {
	faults := &hostfake.Faults{}
	fsys := journaltest.New(faults)
	j, err := journal.NewStoreFS("/s", fsys).Create(operation("g1"), "boot-1", clock())
	require.NoError(t, err)
	before := j.Record()
	for _, label := range []string{"journal write", "journal rename"} {
		faults.FailIf = func(l string) error {
			if l == label {
				return errors.New("no space left on device")
			}
			return nil
		}
		require.ErrorContains(t, j.Begin(0, "boot-1", undo), "no space left")
		assert.Equal(t, before, j.Record())
		onDisk, err := journal.NewStoreFS("/s", fsys).Read("g1")
		require.NoError(t, err)
		assert.Equal(t, journal.StepPending, onDisk.Steps[0].State)
	}
}

func TestAnyDamageOfAFileIsNoticed(t *testing.T) {
	good, err := journal.Encode(journal.Record{
		Operation: operation("g1"), State: journal.Open,
		Steps: []journal.StepRecord{{Kind: upgrade.StepPreflight}, {Kind: upgrade.StepUnholdPackages}, {Kind: upgrade.StepRestartUnit}, {Kind: upgrade.StepVerify}},
	})
	require.NoError(t, err)
	_, err = journal.Decode("f", good)
	require.NoError(t, err)
	for i := range len(good) - 1 { // the last byte is a newline
		bads := [][]byte{good[:i], append(append([]byte(nil), good[:i]...), good[i+1:]...)}
		for bit := range 8 {
			bads = append(bads, flipped(good, i, bit))
		}
		for _, bad := range bads {
			_, err := journal.Decode("/var/lib/refit/journal/g1.json", bad)
			var corrupt *journal.CorruptError
			require.ErrorAs(t, err, &corrupt, "byte %d", i)
			require.Contains(t, err.Error(), "/var/lib/refit/journal/g1.json")
		}
	}
}

func flipped(data []byte, i, bit int) []byte {
	out := append([]byte(nil), data...)
	out[i] ^= 1 << bit
	return out
}

func TestARecordThatMakesNoSenseIsNotTrusted(t *testing.T) {
	steps := []journal.StepRecord{{Kind: upgrade.StepPreflight}, {Kind: upgrade.StepUnholdPackages}, {Kind: upgrade.StepRestartUnit}, {Kind: upgrade.StepVerify}}
	for name, tc := range map[string]struct {
		record journal.Record
		detail string
	}{
		"a step is missing":           {journal.Record{Operation: operation("g1"), State: journal.Open, Steps: steps[1:]}, "3 step records for 4 steps"},
		"steps are of another plan":   {journal.Record{Operation: operation("g1"), State: journal.Open, Steps: append([]journal.StepRecord{{Kind: upgrade.StepReboot}}, steps[1:]...)}, "step 0 is Preflight in the plan and Reboot"},
		"the state is not known":      {journal.Record{Operation: operation("g1"), State: "Halfway", Steps: steps}, "unknown state"},
		"there is no operation":       {journal.Record{State: journal.Open}, "no operation id"},
		"a rollback step has no step": {journal.Record{Operation: operation("g1"), State: journal.Open, Steps: steps, Rollback: []journal.StepRecord{{}}}, "rollback step 0 has no step"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := journal.Encode(tc.record)
			require.NoError(t, err)
			_, err = journal.Decode("f", data)
			require.ErrorContains(t, err, tc.detail)
		})
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	data, err := journal.Encode(journal.Record{Operation: operation("g1")})
	require.NoError(t, err)
	newer := strings.Replace(string(data), `"formatVersion":1`, `"formatVersion":2`, 1)
	_, err = journal.Decode("f", []byte(newer))
	require.ErrorContains(t, err, "format version 2, this program knows 1")
}

func TestAnIDIsBegunOnce(t *testing.T) {
	s := journal.NewStore(t.TempDir())
	_, err := s.Create(operation("g1"), "boot-1", clock())
	require.NoError(t, err)
	_, err = s.Create(operation("g1"), "boot-1", clock())
	require.ErrorIs(t, err, journal.ErrExists)
}

func TestAnIDThatIsAPathIsRefused(t *testing.T) {
	s := journal.NewStore(t.TempDir())
	for _, id := range []string{"", "../x", "a/b", ".x", "a..b", strings.Repeat("x", 200), "a b"} {
		_, err := s.Create(operation(id), "boot-1", clock())
		require.ErrorContains(t, err, "not an operation id", id)
		_, err = s.Read(id)
		require.ErrorContains(t, err, "not an operation id", id)
	}
}

func TestARecordUnderAnotherNameIsNotTrusted(t *testing.T) {
	fsys := journaltest.New(nil)
	s := journal.NewStoreFS("/s", fsys)
	_, err := s.Create(operation("g1"), "boot-1", clock())
	require.NoError(t, err)
	require.NoError(t, fsys.Rename(s.Path("g1"), s.Path("g2")))
	_, err = s.Read("g2")
	require.ErrorContains(t, err, "it is of operation g1")
}

func TestWhatUndoesAStepIsCapturedAtItsFirstAttemptOnly(t *testing.T) {
	s := journal.NewStoreFS("/s", journaltest.New(nil))
	j, err := s.Create(operation("g1"), "boot-1", clock())
	require.NoError(t, err)
	require.NoError(t, j.Begin(1, "boot-1", undo))
	require.NoError(t, j.Begin(1, "boot-2", journal.Undo{None: "seen after half of the effect"}))
	step := j.Record().Steps[1]
	assert.Equal(t, undo.Steps, step.Undo)
	assert.Empty(t, step.NoUndo)
	assert.Equal(t, "boot-1", step.BootID, "the boot it was first begun in")
	assert.Equal(t, 2, step.Attempts)
}

func TestAnAttemptThatIsTakenBackLeavesWhenAndWhereTheStepBegan(t *testing.T) {
	s := journal.NewStoreFS("/s", journaltest.New(nil))
	j, err := s.Create(operation("g1"), "boot-1", clock())
	require.NoError(t, err)
	require.NoError(t, j.Begin(0, "boot-1", journal.Undo{}))
	began := j.Record().Steps[0].Start
	require.NoError(t, j.Interrupt(0))
	require.NoError(t, j.Begin(0, "boot-2", undo))
	step := j.Record().Steps[0]
	assert.Equal(t, 1, step.Attempts)
	assert.Equal(t, "boot-1", step.BootID)
	assert.Equal(t, began, step.Start)
	assert.Empty(t, step.Undo)
}

func TestJournalsAreListedOldestFirstAndDamagedOnesAreNamed(t *testing.T) {
	dir := t.TempDir()
	s := journal.NewStore(dir)
	now := clock()
	for _, id := range []string{"g2", "g1", "g3"} {
		_, err := s.Create(operation(id), "boot-1", now)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(s.Path("g1"), []byte("{}"), 0o600))
	open, err := s.ListOpen()
	require.ErrorContains(t, err, filepath.Join(dir, "journal/g1.json"))
	require.Len(t, open, 2)
	assert.Equal(t, "g2", open[0].Operation.ID)
	all, err := s.List()
	require.Error(t, err)
	assert.Len(t, all, 2)
}

// The cost of one record of a plan as long as a full window, on the real disk and without it.
func BenchmarkWrite(b *testing.B) {
	for name, fsys := range map[string]journal.FS{"disk": journal.Disk{}, "memory": journaltest.New(nil)} {
		b.Run(name, func(b *testing.B) {
			op := operation("g1")
			for i := range 16 {
				op.Plan.Steps = append(op.Plan.Steps, upgrade.Step{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{
					{Name: fmt.Sprint("package", i), From: "1.36.3-1.1", To: "1.37.2-1.1", SHA256: strings.Repeat("0", 64), File: strings.Repeat("0", 64) + ".deb", URI: "http://mirror.example/kubernetes/v1.37/deb/amd64/package.deb"},
				}})
			}
			j, err := journal.NewStoreFS(b.TempDir(), fsys).Create(op, "boot-1", time.Now)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Begin(3, "boot-1", undo); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	good, err := journal.Encode(journal.Record{Operation: operation("g1"), State: journal.Open, Steps: make([]journal.StepRecord, 4)})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"formatVersion":1,"checksum":"","record":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := journal.Decode("f", data)
		if err == nil {
			assert.Len(t, r.Steps, len(r.Operation.Plan.Steps))
			assert.NotEmpty(t, r.Operation.ID)
		}
	})
}
