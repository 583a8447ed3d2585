package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

// host is a directory with a configuration, and an executor that is never reached.
func host(t *testing.T) (config string) {
	t.Helper()
	dir := t.TempDir()
	program, config := filepath.Join(dir, "refit-executor"), filepath.Join(dir, "agent.yaml")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/false\n"), 0o700))
	require.NoError(t, os.WriteFile(config, []byte("executor: "+program+"\n"), 0o600))
	return config
}

func execute(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"--config", host(t)}, args...))
	err := cmd.Execute()
	return out.String(), err
}

func TestAMistakeOnTheCommandLineHasItsOwnCode(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown command":       {"bogus"},
		"an unknown flag":          {"facts", "--bogus"},
		"an argument too many":     {"facts", "x"},
		"a file not named":         {"plan"},
		"a format that is unknown": {"facts", "-o", "xml"},
		"a format for a plan":      {"plan", "-f", "-", "-o", "xml"},
		"a minor that is none":     {"facts", "--minor", "bogus"},
		"two packages in one":      {"facts", "--package", "openssl", "--package", "x y"},
		"an apply without a file":  {"apply", "--yes"},
		"an apply to nobody":       {"apply", "-f", "-"},
		"a format for an apply":    {"apply", "-f", "-", "--yes", "-o", "wide"},
		"a version that is none":   {"plan", "-f", "-", "--api-server-version", "1.x"},
		"a format for operations":  {"operations", "-o", "wide"},
		"a level that is unknown":  {"run", "--log-level", "loud"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t, "", args...)
			require.Error(t, err)
			assert.Equal(t, usage.ExitCode, exitCode(err), err)
			assert.Empty(t, out)
		})
	}
}

func TestAPlanReadsItsMachineFromStandardInput(t *testing.T) {
	_, err := execute(t, "kind: Pod\napiVersion: v1\n", "plan", "-f", "-")
	require.ErrorContains(t, err, "stdin:1: kind: Pod is not read here: give Machine")
	assert.Equal(t, usage.ExitCode, exitCode(err), "bad input, found before the host is looked at")
}

func TestARefusalIsSaidOnce(t *testing.T) {
	blocked := &upgrade.Blocked{Reason: "VersionNotFound", Message: "no source has v1.99.0"}
	for name, tc := range map[string]struct {
		err  error
		says string
	}{
		"the table has it":         {refused{blocked, true}, ""},
		"programs read the output": {refused{blocked, false}, "refit-agent: VersionNotFound: no source has v1.99.0\n"},
		"a fault is no refusal":    {errors.New("no answer"), "refit-agent: no answer\n"},
		"also where it is wrapped": {fmt.Errorf("planning: %w", refused{blocked, true}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			report(&out, tc.err)
			assert.Equal(t, tc.says, out.String())
		})
	}
	assert.Equal(t, usage.ExitWait, exitCode(refused{blocked, true}), "it may pass by itself")
	assert.Equal(t, usage.ExitRefused, exitCode(refused{&upgrade.Blocked{Terminal: true}, true}))
}
