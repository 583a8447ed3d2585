package launch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// What a probe left is a result, or names the file; a failure is never taken for success.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"facts.refit.dev/v1","kind":"Facts","host":{"machineID":"m"},"problems":[{"field":"kubelet","message":"m"}]}`))
	f.Add([]byte(`{"failure":{"reason":"SourceUnavailable","message":"mirror.example: connection refused","terminal":true}}`))
	f.Add([]byte(`{"failure":{}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "result.json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		var facts upgrade.Facts
		var candidates []upgrade.Candidate
		var staged StageResult
		for _, into := range []any{&facts, &candidates, &staged} {
			if err := readResult(path, into); err != nil {
				require.ErrorContains(t, err, path)
			}
		}
		require.False(t, staged.Refused, "that is for the exit code to say")
		ended := &Error{Unit: "refit-probe-facts.service", Exit: systemd.Exit{Result: "exit-code", Code: 1}}
		err := failureOf(path, ended)
		require.ErrorIs(t, err, error(ended), "where to look is always told")
		var blocked *upgrade.Blocked
		if errors.As(err, &blocked) {
			require.NotEmpty(t, blocked.Reason)
		}
	})
}
