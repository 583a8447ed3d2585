package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// leftBehind is a host in the middle of an operation, and what another version of Refit wrote of that on its disk.
type leftBehind struct {
	Host    hostfake.State  `json:"host"`
	Journal json.RawMessage `json:"journal"`
}

// halfway is a host whose executor ended when half of the work was done.
func halfway(t *testing.T) leftBehind {
	t.Helper()
	clean := worker(t)
	require.Equal(t, journal.Successful, clean.finish().State)
	b := worker(t)
	b.crashAt(clean.host.Points() / 2)
	data, err := b.fs.ReadFile(journal.NewStore(b.dir).Path(b.op.ID))
	require.NoError(t, err)
	return leftBehind{b.host.Snapshot(), data}
}

// goOn has this version's executor find all of that after a boot.
func (i leftBehind) goOn(t *testing.T) (*bench, journal.Record) {
	t.Helper()
	b := worker(t)
	b.host.State = i.Host
	store := journal.NewStore(b.dir)
	require.NoError(t, os.MkdirAll(store.Dir(), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "open"), 0o700))
	require.NoError(t, os.WriteFile(store.Path(b.op.ID), append([]byte(i.Journal), '\n'), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "open", b.op.ID), nil, 0o600))
	e := New(Config{StateDir: b.dir, Host: b.host.Host(), Poll: 50 * time.Microsecond, DeadlineCap: 2 * time.Second, LockWait: time.Second})
	records, err := e.Resume(t.Context())
	require.NoError(t, err)
	require.Len(t, records, 1)
	return b, records[0]
}

// Each file is what one version wrote, and is never written anew: a change of the format adds another one.
func TestAnOperationOfAnEarlierVersionIsGoneOnWith(t *testing.T) {
	first := filepath.Join("testdata", "interrupted-format-1.json")
	if _, err := os.Stat(first); os.IsNotExist(err) && os.Getenv("UPDATE_GOLDEN") != "" {
		data, err := json.MarshalIndent(halfway(t), "", " ")
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(first, append(data, '\n'), 0o644))
	}
	clean := worker(t)
	require.Equal(t, journal.Successful, clean.finish().State)
	want := comparable(clean.host.Snapshot())

	found, err := filepath.Glob(filepath.Join("testdata", "interrupted-*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, file := range found {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var i leftBehind
			require.NoError(t, json.Unmarshal(data, &i))
			require.NoError(t, compact(&i.Journal))
			b, rec := i.goOn(t)
			require.Equal(t, journal.Successful, rec.State, rec.Message)
			assert.Equal(t, want, comparable(b.host.Snapshot()))
		})
	}
}

// compact takes off what makes the file fit to read: a journal is as it was written, byte for byte.
func compact(text *json.RawMessage) error {
	var v struct {
		FormatVersion int             `json:"formatVersion"`
		Checksum      string          `json:"checksum"`
		Record        json.RawMessage `json:"record"`
	}
	if err := json.Unmarshal(*text, &v); err != nil {
		return err
	}
	out, err := json.Marshal(v)
	*text = out
	return err
}

// later is a journal of a later version, which has written what this one does not know.
func later(t *testing.T, text []byte, change func(record map[string]any)) []byte {
	t.Helper()
	var file map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &file))
	var record map[string]any
	require.NoError(t, json.Unmarshal(file["record"], &record))
	change(record)
	raw, err := json.Marshal(record)
	require.NoError(t, err)
	sum := sha256.Sum256(raw)
	out, err := json.Marshal(struct {
		FormatVersion int             `json:"formatVersion"`
		Checksum      string          `json:"checksum"`
		Record        json.RawMessage `json:"record"`
	}{journal.FormatVersion, "sha256:" + hex.EncodeToString(sum[:]), raw})
	require.NoError(t, err)
	return out
}

func object(v any, path ...any) map[string]any {
	for _, p := range path {
		switch key := p.(type) {
		case string:
			v = v.(map[string]any)[key]
		case int:
			v = v.([]any)[key]
		}
	}
	return v.(map[string]any)
}

// A package that was put back finds the journal of the one that was there meanwhile.
func TestFieldsOfALaterVersionDoNotStopAnOperation(t *testing.T) {
	clean := worker(t)
	require.Equal(t, journal.Successful, clean.finish().State)
	i := halfway(t)
	i.Journal = later(t, i.Journal, func(r map[string]any) {
		for _, o := range []map[string]any{r, object(r, "operation"), object(r, "operation", "plan"), object(r, "operation", "plan", "steps", 4), object(r, "steps", 4), object(r, "baseline")} {
			o["ofALaterVersion"] = map[string]any{"a": []any{1.0}}
		}
	})
	b, rec := i.goOn(t)
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, comparable(clean.host.Snapshot()), comparable(b.host.Snapshot()))
}

func TestAStepOfALaterVersionTurnsAnOperationRound(t *testing.T) {
	fresh := worker(t)
	want := comparable(fresh.host.Snapshot())
	i := halfway(t)
	last := len(workerPlan().Steps) - 2 // the restart of the kubelet, which is not begun yet
	require.Equal(t, upgrade.StepRestartUnit, workerPlan().Steps[last].Kind)
	i.Journal = later(t, i.Journal, func(r map[string]any) {
		object(r, "operation", "plan", "steps", last)["kind"] = "PolishBrass"
		object(r, "steps", last)["kind"] = "PolishBrass"
	})
	b, rec := i.goOn(t)
	assert.Equal(t, journal.Failed, rec.State)
	assert.Contains(t, rec.Message, "the step PolishBrass is not known to this program")
	assert.Equal(t, 0, rec.Steps[last].Attempts, "it is not begun")
	got := comparable(b.host.Snapshot())
	assert.Equal(t, want.Packages["kubelet"], got.Packages["kubelet"])
	assert.Equal(t, want.Kubelet, got.Kubelet)
}

func TestAJournalOfAnotherFormatIsLeftAlone(t *testing.T) {
	i := halfway(t)
	b := worker(t)
	b.host.State = i.Host
	want := b.host.Snapshot()
	store := journal.NewStore(b.dir)
	require.NoError(t, os.MkdirAll(store.Dir(), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "open"), 0o700))
	var file map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(i.Journal, &file))
	file["formatVersion"] = json.RawMessage("2")
	text, err := json.Marshal(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(store.Path(b.op.ID), text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "open", b.op.ID), nil, 0o600))
	e := New(Config{StateDir: b.dir, Host: b.host.Host(), Poll: 50 * time.Microsecond, LockWait: time.Second})
	_, err = e.Resume(t.Context())
	require.ErrorContains(t, err, "format version 2, this program knows 1")
	assert.Equal(t, want, b.host.Snapshot(), "nothing is run from it")
	left, err := os.ReadFile(store.Path(b.op.ID))
	require.NoError(t, err)
	assert.Equal(t, text, left)
}
