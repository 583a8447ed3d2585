package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARunKeepsBothStreamsAndTheExitCode(t *testing.T) {
	result, err := Exec{}.Run(t.Context(), Command{Argv: []string{"dpkg", "--compare-versions", "1", "gt", "2"}})
	require.Error(t, err)
	assert.Equal(t, 1, result.ExitCode)
	assert.Equal(t, 1, ExitCode(err))

	var log bytes.Buffer
	result, err = Exec{}.Run(t.Context(), Command{Argv: []string{"ls", "/nonexistent-directory", "/"}, Log: &log})
	require.Error(t, err)
	assert.Contains(t, result.Stdout, "etc")
	assert.Contains(t, result.Stderr, "/nonexistent-directory")
	assert.Contains(t, err.Error(), "/nonexistent-directory", "the reason belongs into the error")
	assert.Contains(t, log.String(), "etc")
}

func TestAnOperandIsNeverReadByAShell(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	result, err := Exec{}.Run(t.Context(), Command{Argv: []string{"echo", "v1; touch " + marker + " $(touch " + marker + ")"}})
	require.NoError(t, err)
	assert.Contains(t, result.Stdout, "$(touch")
	assert.NoFileExists(t, marker)
}

func TestAQuestionOnStandardInputIsAnsweredWithEndOfFile(t *testing.T) {
	result, err := Exec{}.Run(t.Context(), Command{Argv: []string{"cat"}, Timeout: 5 * time.Second})
	require.NoError(t, err)
	assert.Empty(t, result.Stdout)
}

func TestTheCallersEnvironmentStaysOutside(t *testing.T) {
	t.Setenv("REFIT_TEST_SECRET", "hunter2")
	result, err := Exec{}.Run(t.Context(), Command{Argv: []string{"env"}, Env: []string{"EXTRA=1"}})
	require.NoError(t, err)
	assert.NotContains(t, result.Stdout, "hunter2")
	assert.Contains(t, result.Stdout, "EXTRA=1")
}

func TestWhenTimeIsUpTheWholeGroupEnds(t *testing.T) {
	// A program that starts a child and waits for it, and deaf to SIGTERM: what a dialog on a terminal looks like.
	dir := t.TempDir()
	script := filepath.Join(dir, "parent")
	pidFile := filepath.Join(dir, "pid")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/bash\ntrap '' TERM\nsleep 300 &\necho $! >"+pidFile+"\nwait\nwait\n"), 0o700))

	start := time.Now()
	_, err := Exec{}.Run(t.Context(), Command{Argv: []string{script}, Timeout: 500 * time.Millisecond, Grace: 500 * time.Millisecond})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var failure *Error
	require.ErrorAs(t, err, &failure)
	assert.True(t, failure.Timeout)
	assert.Less(t, time.Since(start), 10*time.Second)

	data, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return gone(pid) }, 5*time.Second, 20*time.Millisecond, "the child must not outlive the run")
}

// gone also counts a zombie that its new parent has not collected yet.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestAProgramThatDoesNotExistIsNamed(t *testing.T) {
	for _, name := range []string{"no-such-program", "/no/such/program"} {
		_, err := Exec{}.Run(t.Context(), Command{Argv: []string{name}})
		require.ErrorContains(t, err, name)
	}
	_, err := Exec{}.Run(t.Context(), Command{})
	require.ErrorContains(t, err, "no program")
}

func TestOnlyTheTailOfALongOutputIsKept(t *testing.T) {
	result, err := Exec{}.Run(t.Context(), Command{Argv: []string{"seq", "1", "200000"}, Limit: 100})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(result.Stdout), 100)
	assert.Contains(t, result.Stdout, "200000")
}

func TestTailCutsAtALine(t *testing.T) {
	assert.Equal(t, "short", Tail(" short\n", 10))
	assert.Equal(t, "… third", Tail("first line\nsecond line\nthird", 8))
}
