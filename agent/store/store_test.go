package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func plan(assignment string) store.FrozenPlan {
	return store.FrozenPlan{Generation: 4, Plan: upgrade.Plan{AssignmentID: assignment, Hash: "h", Steps: []upgrade.Step{}}}
}

func TestFrozenPlanSurvivesAndReplacesEarlierOnes(t *testing.T) {
	s := store.New(t.TempDir())
	require.NoError(t, s.SavePlan(plan("1-a")))
	require.NoError(t, s.SavePlan(plan("2-b")))
	got, err := store.New(s.Dir()).Plan("2-b")
	require.NoError(t, err)
	assert.Equal(t, plan("2-b"), got)
	_, err = s.Plan("1-a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	info, err := os.Stat(filepath.Join(s.Dir(), "plans", "2-b.json"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestIDsThatAreNoNamesAreRefused(t *testing.T) {
	s := store.New(t.TempDir())
	for _, id := range []string{"", "../x", "a/b", ".hidden", "a b", "a\nb"} {
		require.Error(t, s.SaveIntent(store.Intent{Operation: upgrade.Operation{ID: id}}), "%q", id)
		_, err := s.Known(id)
		assert.Error(t, err, "%q", id)
	}
	entries, err := os.ReadDir(s.Dir())
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestHandingOverAnOperationEndsItsIntent(t *testing.T) {
	s := store.New(t.TempDir())
	op := upgrade.Operation{ID: "g1", Machine: "w1", Plan: plan("1-a").Plan}
	require.NoError(t, s.SaveIntent(store.Intent{BootID: "b", Operation: op}))
	known, err := s.Known("g1")
	require.NoError(t, err)
	assert.False(t, known, "an intent is no record of work")

	require.NoError(t, s.SaveOperation(op))
	_, err = s.Intent("g1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	known, err = s.Known("g1")
	require.NoError(t, err)
	assert.True(t, known)
	unbegun, err := s.Unbegun()
	require.NoError(t, err)
	assert.Equal(t, []upgrade.Operation{op}, unbegun)

	_, err = journal.NewStore(s.Dir()).Create(op, "b", time.Now)
	require.NoError(t, err)
	unbegun, err = s.Unbegun()
	require.NoError(t, err)
	assert.Empty(t, unbegun)
}

// A power loss may bring back the file of an operation whose journal has been pruned.
func TestAnOperationThatEndedHasNotYetToBegin(t *testing.T) {
	s := store.New(t.TempDir())
	for _, id := range []string{"g1", "g2"} {
		op := upgrade.Operation{ID: id, Machine: "w1", Plan: plan("1-a").Plan}
		require.NoError(t, s.SaveOperation(op))
		j, err := journal.NewStore(s.Dir()).Create(op, "b", time.Now)
		require.NoError(t, err)
		require.NoError(t, j.Succeed())
	}
	keepFile := func(string) error { return nil }
	require.NoError(t, journal.NewStore(s.Dir()).Prune(1, keepFile))
	unbegun, err := s.Unbegun()
	require.NoError(t, err)
	assert.Empty(t, unbegun)
}

func TestDamagedStateIsAnErrorThatNamesTheFile(t *testing.T) {
	s := store.New(t.TempDir())
	require.NoError(t, s.SavePlan(plan("1-a")))
	path := filepath.Join(s.Dir(), "plans", "1-a.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := s.Plan("1-a")
	require.ErrorContains(t, err, path)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

func TestStateOfAnotherMachineIsMovedAside(t *testing.T) {
	s := store.New(t.TempDir())
	moved, err := s.Claim("machine-1")
	require.NoError(t, err)
	assert.Empty(t, moved)
	require.NoError(t, s.SaveOperation(upgrade.Operation{ID: "g1"}))

	moved, err = s.Claim("machine-1")
	require.NoError(t, err)
	assert.Empty(t, moved, "its own state stays")
	known, err := s.Known("g1")
	require.NoError(t, err)
	assert.True(t, known)

	moved, err = s.Claim("machine-2")
	require.NoError(t, err)
	assert.NotEmpty(t, moved)
	known, err = s.Known("g1")
	require.NoError(t, err)
	assert.False(t, known)
	_, err = os.Stat(filepath.Join(moved, "operations", "g1.json"))
	assert.NoError(t, err, "nothing is lost")
}

func TestRecordListsWhatTheHostRan(t *testing.T) {
	s := store.New(t.TempDir())
	steps := []upgrade.Step{{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{Kubelet: "v1.37.2", RuntimeName: "containerd", Runtime: "2.0.1"}}}
	for id, succeed := range map[string]bool{"g1": true, "g2": false} {
		j, err := journal.NewStore(s.Dir()).Create(upgrade.Operation{ID: id, Plan: upgrade.Plan{Steps: steps}}, "b", time.Now)
		require.NoError(t, err)
		require.NoError(t, j.SetBaseline(journal.Baseline{Kubelet: "v1.36.3"}))
		if succeed {
			require.NoError(t, j.Succeed())
		} else {
			require.NoError(t, j.Fail("Broken", "it broke", true))
		}
	}
	assert.ElementsMatch(t, []v1alpha1.Versions{
		{Kubelet: "v1.36.3"}, {Kubelet: "v1.36.3"},
		{Kubelet: "v1.37.2", ContainerRuntime: &v1alpha1.ContainerRuntime{Name: "containerd", Version: "2.0.1"}},
	}, s.Record(), "a target that was not reached is not in the record")
}

// A disk that has outlived a new installation has the journals of the host before.
func TestTheRecordOfAnotherMachineIsNone(t *testing.T) {
	s := store.New(t.TempDir())
	j, err := journal.NewStore(s.Dir()).Create(upgrade.Operation{ID: "g1", Plan: upgrade.Plan{}}, "b", time.Now)
	require.NoError(t, err)
	require.NoError(t, j.SetBaseline(journal.Baseline{Kubelet: "v1.36.3"}))
	record, err := s.RecordOf("m1")
	require.NoError(t, err)
	assert.Len(t, record, 1, "nobody has claimed it")
	_, err = s.Claim("m1")
	require.NoError(t, err)
	record, err = s.RecordOf("m1")
	require.NoError(t, err)
	assert.Len(t, record, 1)
	record, err = s.RecordOf("m2")
	assert.Empty(t, record)
	require.ErrorContains(t, err, "of the machine with id m1, and this host has m2")
	record, err = store.New(filepath.Join(t.TempDir(), "none")).RecordOf("m1")
	require.NoError(t, err)
	assert.Empty(t, record)
}
