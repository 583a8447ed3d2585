package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	childEnv = "REFIT_TEST_EXECUTOR_DIR"
	lockEnv  = "REFIT_TEST_LOCK_DIR"
)

// TestMain lets the test binary be the executor of a host whose state is a file.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childEnv) != "":
		child(os.Getenv(childEnv))
	case os.Getenv(lockEnv) != "":
		holdLock(os.Getenv(lockEnv))
	}
	os.Exit(m.Run())
}

func child(dir string) {
	host := hostfake.New(oldKubernetes, oldRuntime)
	load(filepath.Join(dir, "host.json"), &host.State)
	for name := range host.Packages {
		host.Kept[name+" "+oldKubernetes+"-1.1"] = true
	}
	host.Save = func(s hostfake.State) { save(filepath.Join(dir, "host.json"), s) }
	var op upgrade.Operation
	load(filepath.Join(dir, "operation.json"), &op)
	disk := killAt(os.Getenv(killEnv))
	if disk == nil {
		// Time for the kill to come anywhere, not only within a write.
		host.FailIf = func(string) error { time.Sleep(300 * time.Microsecond); return nil }
	}
	fmt.Println("at work")
	e := New(Config{StateDir: filepath.Join(dir, "state"), Host: host.Host(), Journal: disk, Poll: time.Millisecond, LockWait: 20 * time.Second})
	if _, err := e.Run(context.Background(), op); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func load(path string, into any) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		panic(err)
	}
}

func save(path string, v any) {
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path+".tmp", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		panic(err)
	}
}

// A real process with a real journal is killed by SIGKILL, wherever it happens to be,
// and started again until it ends by itself. Its time runs from when it says that it is
// at work, and later ones live longer, so that the test ends on a slow machine too.
func TestAKilledProcessIsFollowedByOneThatFinishes(t *testing.T) {
	clean := worker(t)
	require.Equal(t, journal.Successful, clean.finish().State)
	want := comparable(clean.host.Snapshot())
	kills := 0
	for seed := range uint64(6) {
		b := worker(t)
		save(filepath.Join(b.dir, "host.json"), b.host.Snapshot())
		save(filepath.Join(b.dir, "operation.json"), b.op)
		kills += killUntilDone(t, b.dir, rand.New(rand.NewPCG(seed, 1)))
		rec, err := journal.Read(filepath.Join(b.dir, "state"), b.op.ID)
		require.NoError(t, err)
		var got hostfake.State
		load(filepath.Join(b.dir, "host.json"), &got)
		if attempts := most(rec); attempts >= maxAttempts && rec.State == journal.Failed {
			t.Logf("seed %d: one step was killed %d times and was given up", seed, attempts)
			continue
		}
		require.Equal(t, journal.Successful, rec.State, rec.Message)
		require.Equal(t, want, comparable(got))
		for effect, times := range got.Effects {
			if strings.HasPrefix(effect, "unpack ") {
				assert.Equal(t, 1, times, "seed %d: %s", seed, effect)
			}
		}
	}
	require.Positive(t, kills, "some process was killed before its end")
	t.Logf("%d processes were killed", kills)
}

func most(rec journal.Record) int {
	n := 0
	for _, s := range rec.Steps {
		n = max(n, s.Attempts)
	}
	return n
}

func killUntilDone(t *testing.T, dir string, random *rand.Rand) (kills int) {
	t.Helper()
	for try := range 100 {
		cmd := exec.Command(os.Args[0])
		// A program under the race detector sleeps a second at its end, unless told not to.
		cmd.Env = append(os.Environ(), childEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.ReadFull(out, make([]byte, len("at work\n")))
		require.NoError(t, err)
		kill := time.AfterFunc(time.Duration(20+10*try+random.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		kill.Stop()
		if err == nil {
			return kills
		}
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), "ended by a signal: %v", err)
		kills++
	}
	require.FailNow(t, "the operation never ends")
	return kills
}

func holdLock(dir string) {
	if _, err := AcquireLock(context.Background(), dir, time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("locked")
	time.Sleep(time.Minute)
	os.Exit(0)
}

func TestALockDiesWithItsHolder(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 7))
	require.NoError(t, err)

	_, err = AcquireLock(context.Background(), dir, 50*time.Millisecond)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, fmt.Sprint(cmd.Process.Pid), locked.Holder)

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	release, err := AcquireLock(context.Background(), dir, 5*time.Second)
	require.NoError(t, err)
	release()
}

func TestAnOperationIsLoadedOnlyWhole(t *testing.T) {
	for name, tc := range map[string]struct{ content, says string }{
		"not JSON":                {"{", "decoding"},
		"a field that is unknown": {`{"id":"g1","dryRun":true}`, `unknown field "dryRun"`},
		"another operation":       {`{"id":"g2"}`, `is of operation "g2"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "operations"), 0o700))
			require.NoError(t, os.WriteFile(OperationPath(dir, "g1"), []byte(tc.content), 0o600))
			_, err := LoadOperation(dir, "g1")
			require.ErrorContains(t, err, tc.says)
		})
	}
	_, err := LoadOperation(t.TempDir(), "../g1")
	require.ErrorContains(t, err, "not an operation id")
	_, err = LoadOperation(t.TempDir(), "g1")
	require.ErrorIs(t, err, os.ErrNotExist)
}
