package executor

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
)

// interrupted is a bench whose executor has died in the middle of its work.
func interrupted(t *testing.T) (b *bench, path string) {
	t.Helper()
	b = worker(t)
	b.crashAt(200)
	rec, err := b.record()
	require.NoError(t, err)
	require.False(t, rec.Finished())
	require.Positive(t, rec.Next())
	return b, journal.NewStore(b.dir).Path(b.op.ID)
}

// Whatever byte of a journal is another one, or missing with all that come after it: who
// goes on with the operation, by name or at boot, stops before anything is done, says
// which file it is and what to do. (Every run has a sample of bytes; `make e2e` has all.)
func TestADamagedJournalIsASafeStopWhicheverByteItIs(t *testing.T) {
	b, path := interrupted(t)
	whole, err := b.fs.ReadFile(path)
	require.NoError(t, err)
	whole = bytes.Clone(whole)
	before, calls := b.host.Snapshot(), b.host.Calls()
	random := rand.New(rand.NewPCG(1, 1))
	damages := map[string]func(i int) []byte{
		"flipped": func(i int) []byte {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << random.IntN(8)
			return bad
		},
		"cut off":    func(i int) []byte { return whole[:i] },
		"zeros from": func(i int) []byte { return append(bytes.Clone(whole[:i]), make([]byte, len(whole)-i)...) },
		"missing":    func(i int) []byte { return append(bytes.Clone(whole[:i]), whole[i+1:]...) },
		"twice from": func(i int) []byte { return append(bytes.Clone(whole), whole[i:]...) },
	}
	for name, damage := range damages {
		for i := 0; i < len(whole)-1; i += sampled(101) { // the last byte is a newline
			where := fmt.Sprintf("%s, byte %d", name, i)
			b.fs.Corrupt(path, func([]byte) []byte { return damage(i) })
			_, err := b.executor().Run(t.Context(), b.op)
			requireSafeStop(t, err, path, where)
			ended, err := b.executor().Resume(t.Context())
			requireSafeStop(t, err, path, where)
			require.Empty(t, ended, where)
		}
	}
	assert.Equal(t, before, b.host.Snapshot(), "nothing was done")
	assert.Empty(t, effects(b.host.Log[calls:]), "nothing was tried")

	b.fs.Corrupt(path, func([]byte) []byte { return whole })
	assert.Equal(t, journal.Successful, b.finish().State, "the journal as it was is gone on with")
}

func requireSafeStop(t *testing.T, err error, path, where string) {
	t.Helper()
	var corrupt *journal.CorruptError
	require.ErrorAs(t, err, &corrupt, where)
	require.Equal(t, path, corrupt.Path, where)
	require.Contains(t, err.Error(), "nothing is run from it; look at the host, then move the file away", where)
}

// effects are the calls that are not the journal's own.
func effects(log []string) []string {
	var out []string
	for _, label := range log {
		if !strings.HasPrefix(label, "journal ") {
			out = append(out, label)
		}
	}
	return out
}

// What the message says to do gets the host on: once the damaged file is away, the
// operation is begun anew, looks at the host first, and nothing is installed twice.
func TestADamagedJournalThatWasMovedAwayHoldsNothingUp(t *testing.T) {
	b, path := interrupted(t)
	b.fs.Corrupt(path, func(data []byte) []byte { return data[:len(data)/2] })
	_, err := b.executor().Resume(context.Background())
	requireSafeStop(t, err, path, "before")
	require.NoError(t, b.fs.Rename(path, path+".damaged"))

	ended, err := b.executor().Resume(context.Background())
	require.NoError(t, err, "the boot has nothing to complain of")
	require.Empty(t, ended)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	b.requireEffectiveOnce("moved away", 1)
}
