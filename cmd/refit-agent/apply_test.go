package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/setup"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

const wish = "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [Worker]\n  os: {packages: [{name: openssl}]}\n"

// applyHost plans what a test wants, and its executor does what run says.
type applyHost struct {
	t         *testing.T
	applier   *apply.Applier
	steps     []upgrade.Step
	refusal   *upgrade.Blocked
	situation apply.Situation
	run       func(j *journal.Journal)
	meanwhile func(draft setup.Draft) // another command, while this one plans
	started   int
	planned   int
}

func newApplyHost(t *testing.T) *applyHost {
	t.Helper()
	dir := t.TempDir()
	h := &applyHost{t: t, steps: []upgrade.Step{{Kind: upgrade.StepPreflight}, {Kind: upgrade.StepVerify}}}
	h.run = func(j *journal.Journal) {
		for i := range h.steps {
			require.NoError(t, j.Begin(i, "b", journal.Undo{}))
			require.NoError(t, j.Done(i, ""))
		}
		require.NoError(t, j.Succeed())
	}
	h.applier = &apply.Applier{
		Executor: h, Store: store.New(dir), Hold: func() *upgrade.HoldFacts { return nil },
		MachineID: "m", BootID: "b", LockFile: filepath.Join(dir, "lock"), Poll: time.Millisecond,
	}
	return h
}

func (h *applyHost) Plan(_ context.Context, document setup.Document, _ setup.Statement) (setup.Draft, error) {
	h.planned++
	if h.meanwhile != nil {
		whole := h.steps
		h.meanwhile(h.draft(document))
		run := h.run
		h.run = func(j *journal.Journal) { h.steps = whole; run(j) }
	}
	return h.draft(document), nil
}

func (h *applyHost) draft(document setup.Document) setup.Draft {
	id, err := document.AssignmentID()
	require.NoError(h.t, err)
	p := upgrade.Plan{AssignmentID: id, Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionNone, Steps: h.steps}
	p.Hash, err = p.ComputeHash()
	require.NoError(h.t, err)
	item := preview.MachinePlan{Machine: "w1", State: preview.StatePending, Disruption: p.Disruption}
	switch {
	case h.refusal != nil:
		item.State, item.Refusal, p.Steps = preview.StateRefused, h.refusal, nil
	case len(h.steps) == 0:
		item.State = preview.StateUpToDate
	}
	for _, s := range p.Steps {
		item.Steps = append(item.Steps, preview.Step{Description: s.Describe(), Step: s})
	}
	return setup.Draft{Machine: &v1alpha1.Machine{}, Plan: p, List: preview.PlanList{Items: []preview.MachinePlan{item}}}
}

func (h *applyHost) Situation(_ context.Context, draft setup.Draft, drained bool) (apply.Situation, error) {
	s := h.situation
	s.Machine, s.Plan, s.Drained = draft.Machine, draft.Plan, drained
	return s, nil
}

func (h *applyHost) Facts(context.Context, []string) (upgrade.Facts, error) {
	return upgrade.Facts{}, nil
}

func (h *applyHost) Candidates(context.Context, upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	return nil, nil
}

func (h *applyHost) Stage(context.Context, upgrade.Plan) (launch.StageResult, error) {
	return launch.StageResult{}, nil
}

func (h *applyHost) Start(_ context.Context, id string) error {
	h.started++
	records := journal.NewStore(h.applier.Store.Dir())
	j, err := records.Load(id, time.Now)
	if errors.Is(err, os.ErrNotExist) {
		op, readErr := h.applier.Store.Operation(id)
		require.NoError(h.t, readErr)
		j, err = records.Create(op, "b", time.Now)
	}
	require.NoError(h.t, err)
	h.run(j)
	return nil
}

func (h *applyHost) Running(context.Context, string) (bool, error) { return false, nil }
func (h *applyHost) Alive(context.Context, string) (bool, error)   { return false, nil }
func (h *applyHost) Wait(context.Context, string) error            { return nil }
func (h *applyHost) Release(context.Context, string) error         { return nil }

// apply runs the command, and returns its two outputs and its exit code.
func (h *applyHost) apply(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "machine.yaml")
	require.NoError(h.t, os.WriteFile(file, []byte(wish), 0o600))
	cmd := applyCommand(func(*cobra.Command) (planningHost, *apply.Applier, error) { return h, h.applier, nil })
	cmd.Flags().String("config", filepath.Join(h.t.TempDir(), "agent.yaml"), "")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	usage.Strict(cmd)
	var out, fault bytes.Buffer
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	cmd.SetErr(&fault)
	cmd.SetArgs(append([]string{"-f", file}, args...))
	err := cmd.ExecuteContext(h.t.Context())
	if err != nil {
		code = exitCode(err)
		report(&fault, err)
	}
	return out.String(), fault.String(), code
}

func TestApplyAsksOrIsToldNotTo(t *testing.T) {
	h := newApplyHost(t)
	_, says, code := h.apply()
	assert.Equal(t, usage.ExitCode, code)
	assert.Contains(t, says, "give --yes")
	assert.Zero(t, h.planned, "found before the host is looked at")
}

func TestApplyDoesWhatThePlanSays(t *testing.T) {
	h := newApplyHost(t)
	out, says, code := h.apply("--yes")
	assert.Zero(t, code, says)
	assert.Equal(t, 1, h.started)
	for _, want := range []string{"  1  Preflight", "STEP  STATE", "2/2  done", "Done in 0s"} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "\x1b", "no terminal, no colours")
	assert.Empty(t, says)

	h.steps = nil
	out, _, code = h.apply("--yes")
	assert.Zero(t, code)
	assert.Contains(t, out, "Nothing to do")
	assert.Equal(t, 1, h.started)
}

func TestApplyEndsWithACodeForEachOutcome(t *testing.T) {
	fail := func(reason string, rolledBack bool, notUndone ...string) func(*journal.Journal) {
		return func(j *journal.Journal) {
			require.NoError(t, j.Begin(0, "b", journal.Undo{}))
			require.NoError(t, j.Turn(0, journal.Cause{Step: upgrade.StepReloadUnits, Reason: reason, Message: "no answer"}, nil, notUndone))
			require.NoError(t, j.Fail(reason, "no answer", rolledBack))
		}
	}
	for name, tc := range map[string]struct {
		change func(h *applyHost)
		code   int
		state  apply.State
		says   string
	}{
		"done":          {func(*applyHost) {}, 0, apply.Successful, ""},
		"nothing to do": {func(h *applyHost) { h.steps = nil }, 0, apply.UpToDate, ""},
		"no plan": {func(h *applyHost) {
			h.refusal = &upgrade.Blocked{Reason: "VersionNotFound", Message: "m", Terminal: true}
		}, usage.ExitRefused, apply.Refused, ""},
		"no plan for now": {func(h *applyHost) { h.refusal = &upgrade.Blocked{Reason: "RepoUnreachable", Message: "m"} }, usage.ExitWait, apply.Refused, ""},
		"an agent runs":   {func(h *applyHost) { h.situation.AgentRuns = true }, usage.ExitRefused, apply.Refused, "AgentRunning: "},
		"held": {func(h *applyHost) {
			h.applier.Hold = func() *upgrade.HoldFacts {
				return &upgrade.HoldFacts{Path: "/etc/refit/hold", Message: "inventory until Friday\n"}
			}
		}, usage.ExitWait, apply.Refused, `HeldByOwner: the host's owner refuses grants with /etc/refit/hold ("inventory until Friday"); remove`},
		"rolled back":         {func(h *applyHost) { h.steps[0].Kind, h.run = upgrade.StepReloadUnits, fail("X", true) }, usage.ExitRolledBack, apply.RolledBack, "failed at ReloadUnits after 0s: X: no answer"},
		"not all rolled back": {func(h *applyHost) { h.steps[0].Kind, h.run = upgrade.StepReloadUnits, fail("X", false, "etcd") }, usage.ExitNotRolledBack, apply.NotRolledBack, "X: no answer"},
		"stopped":             {func(h *applyHost) { h.run = func(*journal.Journal) {} }, usage.ExitNotRolledBack, apply.Stopped, "apply the same file to go on"},
	} {
		for _, output := range []string{"table", "json"} {
			t.Run(name+" as "+output, func(t *testing.T) {
				h := newApplyHost(t)
				tc.change(h)
				out, says, code := h.apply("--yes", "-o", output)
				assert.Equal(t, tc.code, code, says)
				assert.Contains(t, says, tc.says)
				if output == "table" {
					return
				}
				var result applyResult
				require.NoError(t, json.Unmarshal([]byte(out), &result), "%s", out)
				assert.Equal(t, tc.state, result.State)
				assert.Equal(t, "ApplyResult", result.Kind)
				assert.Equal(t, tc.state == apply.Refused, result.Refusal != nil)
				begun := tc.state != apply.Refused && tc.state != apply.UpToDate
				assert.Equal(t, begun, result.Operation != nil)
			})
		}
	}
}

// A host that goes down ends the executor, and perhaps not yet this command.
func TestAHostThatGoesDownHasNotStoppedItsOperation(t *testing.T) {
	h := newApplyHost(t)
	h.steps = []upgrade.Step{{Kind: upgrade.StepReboot, Reason: "kernel"}, {Kind: upgrade.StepVerify}}
	h.run = func(j *journal.Journal) { require.NoError(t, j.Begin(0, "b", journal.Undo{})) }
	out, says, code := h.apply("--yes")
	assert.Equal(t, usage.ExitFault, code)
	assert.Contains(t, says, "goes on after the boot")
	assert.Contains(t, out, "refit-resume.service goes on with the operation after the boot")
}

func TestApplyingTheFileAgainGoesOnWithWhatHasStopped(t *testing.T) {
	h := newApplyHost(t)
	whole := h.run
	h.run = func(*journal.Journal) {}
	_, _, code := h.apply("--yes")
	require.Equal(t, usage.ExitNotRolledBack, code)
	h.run = whole
	out, says, code := h.apply("--yes")
	assert.Zero(t, code, says)
	assert.Contains(t, out, "has no outcome yet: following it")
	assert.Equal(t, 1, h.planned, "what is under way is not planned again")
}

// Two people, or one who is impatient: the second command looked before the first one's
// operation was there, and planned beside it.
func TestAFileThatIsAppliedTwiceAtOnceIsFollowedByTheSecond(t *testing.T) {
	for name, change := range map[string]func(h *applyHost){
		"and was planned before":           func(*applyHost) {},
		"and could not be planned beside":  func(h *applyHost) { h.refusal = &upgrade.Blocked{Reason: "PackageLockHeld", Message: "m"} },
		"and has nothing left to be begun": func(h *applyHost) { h.steps = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newApplyHost(t)
			var first upgrade.Operation
			h.meanwhile = func(draft setup.Draft) {
				h.meanwhile = nil
				var err error
				first, err = h.applier.Accept(t.Context(), draft.Machine, draft.Plan)
				require.NoError(t, err)
				change(h)
			}
			out, says, code := h.apply("--yes", "-o", "json")
			require.Zero(t, code, says)
			var result applyResult
			require.NoError(t, json.Unmarshal([]byte(out), &result), "%s", out)
			assert.Equal(t, apply.Successful, result.State)
			assert.Nil(t, result.Refusal)
			assert.Nil(t, result.Plan, "it is not what is carried out")
			if assert.NotNil(t, result.Operation) {
				assert.Equal(t, first.ID, result.Operation.ID)
			}
			assert.Contains(t, says, "begun by another command meanwhile: following it")
		})
	}
}

func TestAFailureIsRememberedByTheNextApply(t *testing.T) {
	h := newApplyHost(t)
	h.run = func(j *journal.Journal) {
		require.NoError(t, j.Turn(2, journal.Cause{Reason: "HostRebooted", Message: "m"}, nil, nil))
		require.NoError(t, j.Fail("HostRebooted", "m", false))
	}
	_, _, code := h.apply("--yes")
	require.Equal(t, usage.ExitRolledBack, code)
	out, _, _ := h.apply("--yes")
	assert.Contains(t, out, "This file was applied before: operation ")
	assert.Contains(t, out, "RolledBack, HostRebooted: m")
}

func TestOnlyAPlainYesIsOne(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes \n": true, "\n": false, "": false, "n\n": false, "yep\n": false} {
		var out bytes.Buffer
		assert.Equal(t, want, confirmed(strings.NewReader(answer), &out, "Do it?"), "%q", answer)
		assert.Equal(t, "Do it? [y/N]: ", out.String())
	}
}

func TestOperationsAreATableOrData(t *testing.T) {
	h := newApplyHost(t)
	_, _, code := h.apply("--yes")
	require.Zero(t, code)
	records, err := h.applier.Store.Operations()
	require.NoError(t, err)
	require.Len(t, records, 1)
	list := operationsOf(records, func(string) bool { return true })
	var out bytes.Buffer
	require.NoError(t, printOperations(&out, list))
	assert.Regexp(t, `OPERATION +TYPE +STATE .*\nlocal-\S+ +Upgrade +Successful +2/2 +\S+Z +\d+s +All steps done\n`, out.String())
	records[0].State, records[0].EndTime = journal.Open, nil
	assert.Equal(t, apply.Processing, operationsOf(records, func(string) bool { return true }).Items[0].State)
	assert.Equal(t, apply.Stopped, operationsOf(records, func(string) bool { return false }).Items[0].State, "its executor has ended")
}
