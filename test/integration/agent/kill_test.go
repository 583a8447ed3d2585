package agent_test

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/api/v1alpha1"
)

// held is the real filesystem, which lets somebody act before and after each write of a record.
type held struct {
	journal.Disk
	at func(where string)
}

func (d held) Create(name string, mode fs.FileMode) (journal.File, error) {
	if strings.HasSuffix(name, ".tmp") {
		d.at("before a write")
	}
	return d.Disk.Create(name, mode)
}

func (d held) Rename(from, to string) error {
	defer d.at("after a write")
	return d.Disk.Rename(from, to)
}

// An agent that is a process of its own, with a real API server and a real journal, is
// killed by SIGKILL before and after every write of the journal, while the executor is
// held there; the next one follows the work. The operation runs once, and its end is
// reported once.
func TestAnAgentKilledAtEveryWriteOfTheJournalIsFollowedByOneThatReports(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	waits := make(chan struct{}, 100)
	c.serve(dir, func(what string) {
		if what == "wait" {
			waits <- struct{}{}
		}
	})
	var mu sync.Mutex
	agentProcess := spawnAgent(t, dir)
	end := func() {
		require.NoError(t, agentProcess.Process.Kill())
		_ = agentProcess.Wait()
	}
	t.Cleanup(func() { mu.Lock(); defer mu.Unlock(); end() })
	kills := map[string]int{}
	c.host.disk = held{at: func(where string) {
		mu.Lock()
		defer mu.Unlock()
		drain(waits)
		end()
		agentProcess = spawnAgent(t, dir)
		kills[where]++
		if r, err := journal.Read(c.host.state.Dir(), "g1"); err == nil && r.Finished() {
			return // there is nothing left to follow
		}
		select {
		case <-waits: // it has found the work and follows it
		case <-time.After(patience):
			t.Errorf("no agent follows the work, %s", where)
		}
	}}

	c.assign("1-a", 1)
	c.grant("g1")
	done := c.eventuallyWithin(5*time.Minute, "successful", succeeded("g1"))

	record, err := journal.Read(c.host.state.Dir(), "g1")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(record.Steps), 10, "a plan with at least ten steps")
	for _, s := range record.Steps {
		assert.Equal(t, 1, s.Attempts, "%s was begun once", s.Kind)
	}
	writes := 2*len(record.Steps) + 2 // the first record, two for each step, the last
	mu.Lock()
	assert.Equal(t, map[string]int{"before a write": writes, "after a write": writes}, kills)
	mu.Unlock()
	assert.Equal(t, 1, c.host.begun("g1"))
	assert.Equal(t, newVersion, done.Status.Versions.Kubelet)
	assert.Equal(t, done.Status.LastOperation.StepsTotal, done.Status.LastOperation.StepsDone)
	c.never("another end of the operation", 2*time.Second, func(m *v1alpha1.Machine) bool {
		return fmt.Sprint(m.Status.LastOperation.State) != string(v1alpha1.OperationSuccessful)
	})
}

func drain(c chan struct{}) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
