package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// The reason is what programs go by: it crosses from the executor to the agent in a file.
func TestAnErrorLeavesItsReasonWhereTheResultWasAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"a refusal":                   {fmt.Errorf("x: %w", &upgrade.Blocked{Reason: "RepoUnreachable", Message: "m"}), "RepoUnreachable"},
		"a full disk below our own":   {fmt.Errorf("writing: %w", &os.PathError{Op: "write", Path: "/var/lib/refit/x", Err: syscall.ENOSPC}), "NoSpace"},
		"a quota that is used up":     {errors.Join(errors.New("y"), fmt.Errorf("x: %w", syscall.EDQUOT)), "NoSpace"},
		"anything else has no reason": {errors.New("no answer"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			output := filepath.Join(t.TempDir(), "result.json")
			require.ErrorIs(t, explain(output, tc.err), tc.err)
			data, err := os.ReadFile(output)
			require.NoError(t, err)
			var left upgrade.FailureFile
			require.NoError(t, json.Unmarshal(data, &left))
			assert.Equal(t, tc.reason, left.Failure.Reason)
			assert.NotEmpty(t, left.Failure.Message)
		})
	}
}
