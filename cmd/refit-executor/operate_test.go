package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// execute runs the command on a host that is a directory.
func execute(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"--root", root, "--log-level", "error"}, args...))
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func ended(t *testing.T, root, message string) *journal.Store {
	store := journal.NewStore(filepath.Join(root, stateDir))
	op := upgrade.Operation{ID: "g1", Plan: upgrade.Plan{Steps: []upgrade.Step{{Kind: upgrade.StepVerify}}}}
	j, err := store.Create(op, "boot-1", time.Now)
	require.NoError(t, err)
	require.NoError(t, j.Fail("KubeletUnhealthy", message, true))
	return store
}

func TestAKnownOperationIsAnsweredWithItsOutcomeAndCode(t *testing.T) {
	root := t.TempDir()
	ended(t, root, "no answer")
	_, err := execute(t, root, "run", "--operation", "g1")
	require.ErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "KubeletUnhealthy: no answer")
}

func TestAnUnknownOperationIsAFault(t *testing.T) {
	_, err := execute(t, t.TempDir(), "run", "--operation", "g9")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, errRefused)
}

func TestADamagedJournalIsNotRunFromTheOperationFile(t *testing.T) {
	root := t.TempDir()
	store := ended(t, root, "")
	require.NoError(t, os.WriteFile(store.Path("g1"), []byte("{"), 0o600))
	operation := executor.OperationPath(filepath.Join(root, stateDir), "g1")
	require.NoError(t, os.MkdirAll(filepath.Dir(operation), 0o700))
	require.NoError(t, os.WriteFile(operation, []byte(`{"id":"g1"}`), 0o600))
	_, err := execute(t, root, "run", "--operation", "g1")
	var corrupt *journal.CorruptError
	require.ErrorAs(t, err, &corrupt)
}

func TestStatusIsATableWhateverAMessageHolds(t *testing.T) {
	root := t.TempDir()
	ended(t, root, "first line\nsecond line")
	out, err := execute(t, root, "status")
	require.NoError(t, err)
	assert.Contains(t, out, "Failed, rolled back")
	assert.Contains(t, out, "first line second line")

	out, err = execute(t, root, "status", "g1", "-o", "json")
	require.NoError(t, err)
	var records []journal.Record
	require.NoError(t, json.Unmarshal([]byte(out), &records))
	assert.Equal(t, "first line\nsecond line", records[0].Message)
}

func TestAPlanThatCannotBeStagedIsRefusedWithItsFindings(t *testing.T) {
	root := t.TempDir()
	plan := filepath.Join(root, "plan.json")
	require.NoError(t, os.WriteFile(plan, []byte(`{"stage":{"kind":"Stage","packages":[{"name":"kubelet","to":"1","file":"../x","sha256":"0"}]}}`), 0o600))
	result := filepath.Join(root, "result.json")
	_, err := execute(t, root, "stage", "--plan", plan, "--output", result)
	require.ErrorIs(t, err, errRefused)
	data, err := os.ReadFile(result)
	require.NoError(t, err)
	assert.Contains(t, string(data), "PlanInvalid")
}

func TestBadInputSaysWhatIsWrong(t *testing.T) {
	root := t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no operation":         {[]string{"run"}, "operation"},
		"an id that is a path": {[]string{"run", "--operation", "../x"}, "not an operation id"},
		"an unknown flag":      {[]string{"resume", "--force"}, "--help"},
		"an unknown format":    {[]string{"status", "-o", "xml"}, "json or yaml"},
		"an unknown level":     {[]string{"status", "--log-level", "loud"}, "one of debug"},
		"a missing request":    {[]string{"candidates", "--request", "/nowhere"}, "reading the request"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, root, tc.args...)
			require.ErrorContains(t, err, tc.says)
		})
	}
}
