package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// A request that cannot be read is named.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"sources":[{"name":"kubernetes","uri":"https://m/v1.37/deb/","suites":["/"],"signedBy":"kubernetes"}],"packages":["kubelet"]}`))
	f.Add([]byte(`{"assignmentID":"4-a","steps":[{"kind":"Verify"}],"stage":{"images":["a:b"]}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "request.json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		var request upgrade.CandidateRequest
		var plan upgrade.Plan
		for _, into := range []any{&request, &plan} {
			if err := read(path, into); err != nil {
				require.ErrorContains(t, err, path)
			}
		}
	})
}

// A message is one cell of a table, whatever a program printed.
func FuzzOneLine(f *testing.F) {
	f.Add("first line\n\tsecond line")
	f.Add(strings.Repeat("ä ", 200))
	f.Add("\xff\x00\v")
	f.Fuzz(func(t *testing.T, text string) {
		line := oneLine(text)
		require.False(t, strings.ContainsAny(line, "\n\r\t\v"))
		require.LessOrEqual(t, utf8.RuneCountInString(line), 161)
		require.Equal(t, line, oneLine(line), "a line stays as it is")
	})
}
