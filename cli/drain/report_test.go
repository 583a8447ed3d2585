package drain_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	clidrain "github.com/refit-dev/refit/cli/drain"
	"github.com/refit-dev/refit/pkg/drain"
)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "make golden writes it")
	assert.Equal(t, string(want), string(got), "make golden rewrites it; read the diff")
}

// tell reports a whole drain and two that end otherwise.
func tell(r clidrain.Reporter) {
	at := time.Date(2030, 1, 1, 14, 0, 0, 0, time.FixedZone("", 7200))
	r.Cordoned("w1", true)
	r.Cordoned("w2", false)
	for _, e := range []drain.Event{
		{Kind: drain.EventEvicted, Namespace: "shop", Name: "a", Total: 2, Remaining: 2},
		{Kind: drain.EventBlocked, Namespace: "shop", Name: "b", Reason: drain.ReasonEvictionBlocked, Message: "budget b allows 0 disruptions", Since: at, Total: 2, Remaining: 2},
		{Kind: drain.EventGone, Namespace: "shop", Name: "a", Total: 2, Remaining: 1},
		{Kind: drain.EventWarning, Reason: drain.ReasonNodeUnreachable, Message: "node w1 has been unreachable", Total: 2, Remaining: 1},
		{Kind: drain.EventSkipped, Namespace: "shop", Name: "b", Reason: drain.ReasonPodsTerminating, Message: "its deletion is overdue; no longer waited for", Total: 2, Remaining: 0},
	} {
		e.Time = at
		r.Event("w1", e)
	}
	r.Ended("w1", clidrain.End{
		Result: drain.Result{Evicted: 2, Awaited: 1, Remaining: make([]drain.BlockedPod, 1), Duration: 61 * time.Second},
		Cordon: "it stays cordoned until kubectl uncordon w1", Kept: true,
	})
	r.Ended("w2", clidrain.End{Result: drain.Result{Duration: time.Second}, Err: &drain.Blocked{Reason: drain.ReasonUnmanagedPods, Message: "shop/c has no controller", Pods: []drain.BlockedPod{
		{Namespace: "shop", Name: "c", PDBs: []string{"c"}, Since: at, Reason: drain.ReasonUnmanagedPods, Message: "has no controller"},
	}}, Flags: []string{"--force"}})
	r.GivenBack("w2", "it stays cordoned, as it was before")
	r.Ended("w3", clidrain.End{Err: errors.New("no answer from the API server")})
}

func TestReportsAreAsTheyWere(t *testing.T) {
	var text, colour, lines bytes.Buffer
	tell(clidrain.Text{Out: &text})
	tell(clidrain.Text{Out: &colour, Colour: true})
	tell(clidrain.JSON{Out: &lines, Now: func() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }})
	golden(t, "text.golden", text.Bytes())
	golden(t, "json.golden", lines.Bytes())
	assert.NotContains(t, text.String(), "\x1b")
	assert.Contains(t, colour.String(), "\x1b[31mnode/w2 not drained")
	assert.Contains(t, colour.String(), "\x1b[32mnode/w1 drained")
}
