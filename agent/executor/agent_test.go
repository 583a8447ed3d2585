package executor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/health"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const agentUnit = "refit-agent.service"

// agentPlan moves Refit's own package on a host of a cluster.
func agentPlan() upgrade.Plan {
	refit := change("refit-agent", "1.2.3-1", "1.3.0-1")
	return sealed(upgrade.Plan{AssignmentID: "10-abc", Type: "Upgrade", Disruption: "None", Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Packages: []upgrade.PackageChange{refit}}},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{refit}},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: agentUnit},
		{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{Agent: true, Packages: []upgrade.PackageChange{refit}}},
	}})
}

// agentHost runs an agent which says, once it is the new one, what a test wants it to.
func agentHost(t *testing.T, says *health.Report) (*bench, *[]string) {
	h := hostfake.New(oldKubernetes, oldRuntime)
	h.Packages["refit-agent"] = hostfake.Package{Version: "1.2.3-1", State: "installed"}
	h.Kept["refit-agent 1.2.3-1"] = true
	h.Active[agentUnit] = true
	b := newBench(t, h, agentPlan())
	ran := &[]string{}
	b.host.FailIf = func(label string) error {
		version := h.Packages["refit-agent"].Version
		h.Files[health.Program] = hostfake.File{Content: "digest of " + version, Mode: 0o755}
		if label != "restart "+agentUnit {
			return nil
		}
		*ran = append(*ran, version)
		delete(h.Files, health.File)
		if version == "1.3.0-1" && says != nil {
			text, err := says.Encode()
			require.NoError(t, err)
			h.Files[health.File] = hostfake.File{Content: string(text), Mode: 0o600}
		}
		return nil // the agent before knows of no such file
	}
	return b, ran
}

func TestANewAgentStaysOnlyIfItIsWell(t *testing.T) {
	well := health.Report{Program: "digest of 1.3.0-1", Version: "v1.3.0", ExecutorAnswers: true, Reported: true}
	with := func(change func(*health.Report)) *health.Report {
		r := well
		change(&r)
		return &r
	}
	for name, tc := range map[string]struct {
		says   *health.Report
		reason string // "": it stays
	}{
		"one that is well":                               {&well, ""},
		"one whose API server is away":                   {with(func(r *health.Report) { r.Reported = false }), ""},
		"one that never comes up":                        {nil, "AgentNotUp"},
		"the old one, which still runs":                  {with(func(r *health.Report) { r.Program = "digest of 1.2.3-1" }), "AgentNotUp"},
		"one with an executor that fails":                {with(func(r *health.Report) { r.ExecutorAnswers, r.ExecutorFault = false, "exec format error" }), "ExecutorUnhealthy"},
		"one with an executor that hangs":                {with(func(r *health.Report) { r.ExecutorAnswers = false }), "ExecutorUnhealthy"},
		"one whose reports the API server does not take": {with(func(r *health.Report) { r.Reported, r.Refused = false, "field not declared in schema" }), "AgentRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			b, ran := agentHost(t, tc.says)
			e := b.executor()
			e.DeadlineCap = 400 * time.Millisecond
			rec, err := e.Run(t.Context(), b.op)
			require.NoError(t, err)
			assert.Equal(t, tc.reason, rec.Reason, rec.Message)
			if tc.reason == "" {
				assert.Equal(t, journal.Successful, rec.State, rec.Message)
				assert.Equal(t, []string{"1.3.0-1"}, *ran, "it is started once")
				assert.Equal(t, "1.3.0-1", b.host.Packages["refit-agent"].Version)
				return
			}
			assert.Equal(t, journal.Failed, rec.State)
			assert.True(t, rec.RolledBack, rec.Message)
			assert.Equal(t, []string{"1.3.0-1", "1.2.3-1"}, *ran, "the one before runs again")
			assert.Equal(t, "1.2.3-1", b.host.Packages["refit-agent"].Version)
			assert.True(t, b.host.Active[agentUnit])
		})
	}
}

func TestANewAgentWhoseUnitDoesNotStartIsTakenBack(t *testing.T) {
	b, ran := agentHost(t, nil)
	before := b.host.FailIf
	b.host.FailIf = func(label string) error {
		err := before(label)
		b.host.Down[agentUnit] = b.host.Packages["refit-agent"].Version == "1.3.0-1"
		return err
	}
	e := b.executor()
	e.DeadlineCap = 400 * time.Millisecond
	rec, err := e.Run(t.Context(), b.op)
	require.NoError(t, err)
	assert.Equal(t, "UnitNotActive", rec.Reason, rec.Message)
	assert.True(t, rec.RolledBack, rec.Message)
	assert.Equal(t, []string{"1.3.0-1", "1.2.3-1"}, *ran)
	assert.True(t, b.host.Active[agentUnit])
}
