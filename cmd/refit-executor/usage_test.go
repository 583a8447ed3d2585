package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/pkg/version"
)

func TestAMistakeOnTheCommandLineHasItsOwnCode(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown command":       {"bogus"},
		"an unknown flag":          {"facts", "--bogus"},
		"an argument too many":     {"facts", "x"},
		"an operation not named":   {"run"},
		"a format that is unknown": {"facts", "-o", "xml"},
		"two packages in one":      {"facts", "--package", "x y"},
		"a format for status":      {"status", "-o", "xml"},
		"a level that is unknown":  {"--log-level", "loud", "status"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t, t.TempDir(), args...)
			require.Error(t, err)
			assert.Equal(t, usage.ExitCode, exitCode(err), err)
			assert.Empty(t, out)
		})
	}
	_, err := execute(t, t.TempDir(), "run", "--operation", "g9")
	assert.Equal(t, exitFault, exitCode(err))
}

func TestVersionIsAnAnswer(t *testing.T) {
	out, err := execute(t, t.TempDir(), "version")
	require.NoError(t, err)
	assert.Equal(t, version.Version+"\n", out)
}
