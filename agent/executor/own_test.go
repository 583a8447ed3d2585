package executor

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func (b *bench) executorOf(machine string) *Executor {
	e := b.executor()
	e.MachineID = machine
	return e
}

// A disk is cloned in the middle of an operation, and its copy boots in another machine.
func TestTheOperationOfAnotherMachineIsNotGoneOnWith(t *testing.T) {
	b := worker(t)
	b.host.CrashAt = 60
	_, crashed := hostfake.Crashes(func() { _, _ = b.executorOf("machine-1").Run(context.Background(), b.op) })
	require.True(t, crashed)
	b.host.CrashAt = 0
	open, err := b.executor().store.ListOpen()
	require.NoError(t, err)
	require.Len(t, open, 1)
	before, calls := comparable(b.host.Snapshot()), len(b.host.Log)

	for name, try := range map[string]func(*Executor) error{
		"at boot":  func(e *Executor) error { _, err := e.Resume(context.Background()); return err },
		"by grant": func(e *Executor) error { _, err := e.Run(context.Background(), b.op); return err },
	} {
		released := false
		e := b.executorOf("machine-2")
		e.ReleaseUnits = func() { released = true }
		var blocked *upgrade.Blocked
		require.ErrorAs(t, try(e), &blocked, name)
		assert.Equal(t, "StateOfAnotherMachine", blocked.Reason)
		assert.Contains(t, blocked.Message, "machine-1")
		assert.Equal(t, name == "at boot", released, "the kubelet does not wait for it")
	}
	assert.Equal(t, before, comparable(b.host.Snapshot()))
	assert.Len(t, b.host.Log, calls, "the host was not even asked")

	ended, err := b.executorOf("machine-1").Resume(context.Background())
	require.NoError(t, err, "its own machine goes on")
	require.Len(t, ended, 1)
	assert.Equal(t, journal.Successful, ended[0].State)
}

func TestOnlyTheLastOperationsStayOnRecord(t *testing.T) {
	dir := t.TempDir()
	ids := []string{"g1", "g2", "g3", "g4", "g5", "g6", "g7"}
	first := worker(t).op
	for _, id := range ids {
		b := worker(t)
		b.dir, b.op.ID = dir, id
		for _, path := range []string{OperationPath(dir, id), filepath.Join(dir, "log", id+".log")} {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
		}
		e := b.executor()
		e.Config.Journal = journal.Disk{}
		rec, err := New(e.Config).Run(context.Background(), b.op)
		require.NoError(t, err)
		require.Equal(t, journal.Successful, rec.State)
	}
	for _, sub := range []string{"journal", "operations", "log"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		require.NoError(t, err)
		assert.Len(t, entries, keepEnded, sub)
	}
	s := store.New(dir)
	for _, id := range ids {
		known, err := s.Known(id)
		require.NoError(t, err)
		assert.True(t, known, "%s is never run again", id)
	}
	unbegun, err := s.Unbegun()
	require.NoError(t, err)
	assert.Empty(t, unbegun)

	b := worker(t)
	first.ID = "g1"
	e := b.executor()
	e.Config.Journal, e.StateDir = journal.Disk{}, dir
	_, err = New(e.Config).Run(context.Background(), first)
	require.ErrorContains(t, err, "ran on this host before")
	assert.Zero(t, b.host.Snapshot().Effects["unpack kubelet"])
}
