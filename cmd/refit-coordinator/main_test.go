package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
)

func TestHelpAndVersionAreAnswers(t *testing.T) {
	for _, flag := range []string{"--help", "-h", "--version", "version"} {
		var out bytes.Buffer
		require.NoError(t, run([]string{flag}, &out), flag)
		assert.NotEmpty(t, out.String(), flag)
	}
}

func TestAMistakeOnTheCommandLineEndsBeforeAnythingIsBegun(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":                 {"x"},
		"an argument to version":      {"version", "x"},
		"an unknown flag":             {"--bogus"},
		"a lease that is too short":   {"--lease-duration=1s"},
		"a namespace that is none":    {"--namespace=A_B"},
		"a level that does not exist": {"--log-level=loud"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(args, &out)
			require.Error(t, err)
			assert.Equal(t, usage.ExitCode, exitCode(err))
			assert.Empty(t, out.String())
		})
	}
}
