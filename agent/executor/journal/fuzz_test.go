package journal_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
)

// A record behind a checksum that is right, whoever wrote it: what is taken writes as what
// was read, and every question that is asked of it has an answer.
func FuzzDecodeRecord(f *testing.F) {
	for _, rec := range []journal.Record{
		{Operation: operation("g1"), State: journal.Open, Steps: make([]journal.StepRecord, 4)},
		{Operation: operation("g1"), State: journal.Failed, RollingBack: true, NotUndone: []string{"x"}},
	} {
		raw, err := json.Marshal(rec)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Add([]byte(`{"operation":{"id":"g1"},"state":"Open","steps":[],"rollback":[{"kind":"Verify","step":null}]}`))
	f.Add([]byte(`{"operation":{"id":"../x"},"state":"Successful","steps":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := journal.DecodeRecord("f", raw)
		if err != nil {
			var corrupt *journal.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, "f", corrupt.Path)
			return
		}
		require.LessOrEqual(t, r.Next(), len(r.Steps))
		require.LessOrEqual(t, r.NextRollback(), len(r.Rollback))
		require.LessOrEqual(t, r.Done(), len(r.Steps))
		_, _, _ = r.Telling(), r.Touched(), r.Current().Duration()
		data, err := journal.Encode(r)
		require.NoError(t, err)
		again, err := journal.Decode("f", data)
		require.NoError(t, err)
		once, err := json.Marshal(r)
		require.NoError(t, err)
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(once), string(twice))
		_, err = journal.Decode("f", append(data[:len(data)-3:len(data)-3], "}}}"...))
		require.Error(t, err, "a byte too many")
	})
}

// The list of operations that ended keeps an id from running twice.
func FuzzEnded(f *testing.F) {
	f.Add([]byte("4-a.1\n4-a.2\n"))
	f.Add([]byte("\x00 \n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ended"), data, 0o600))
		ended, err := journal.NewStore(dir).Ended()
		require.NoError(t, err)
		for _, id := range ended {
			require.NotEmpty(t, id)
			require.Equal(t, id, strings.TrimSpace(id))
		}
	})
}

func FuzzValidID(f *testing.F) {
	f.Add("4-a.1")
	f.Add("..")
	f.Add("a/b")
	f.Add("a\n")
	f.Fuzz(func(t *testing.T, id string) {
		if !journal.ValidID(id) {
			return
		}
		require.Equal(t, id, filepath.Base(id))
		require.False(t, strings.HasPrefix(id, ".") || strings.HasPrefix(id, "-") || strings.Contains(id, ".."))
		require.LessOrEqual(t, len(id), 128)
		require.Equal(t, filepath.Join("/s/journal", id+".json"), journal.NewStore("/s").Path(id))
	})
}
