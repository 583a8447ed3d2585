package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refit-dev/refit/pkg/usage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const scenarioText = `apiVersion: refit.dev/v1alpha1
kind: Simulation
spec:
  machines:
  - {name: cp, count: 1, roles: [ControlPlane], versions: {kubelet: v1.37.2, controlPlane: v1.37.2}}
  - {name: w, count: 2, labels: {pool: workers}, versions: {kubelet: v1.37.0}}
---
apiVersion: refit.dev/v1alpha1
kind: MachineDeployment
metadata: {name: workers}
spec: {selector: {matchLabels: {pool: workers}}, template: {spec: {versions: {kubelet: v1.37.2}}}}
`

const conflicting = `---
apiVersion: refit.dev/v1alpha1
kind: MachineDeployment
metadata: {name: a}
spec: {selector: {matchLabels: {pool: workers}}, template: {spec: {versions: {kubelet: v1.37.2}}}}
---
apiVersion: refit.dev/v1alpha1
kind: MachineDeployment
metadata: {name: b}
spec: {selector: {matchLabels: {pool: workers}}, template: {spec: {versions: {kubelet: v1.37.2}}}}
`

const checked = `---
apiVersion: refit.dev/v1alpha1
kind: MachineDeployment
metadata: {name: racks}
spec:
  selector: {matchLabels: {pool: racks}}
  template: {spec: {versions: {kubelet: v1.37.2}}}
  strategy: {rollingUpdate: {checks: [{name: r, cel: "true"}]}}
`

func TestASimulationSaysHowItEndedByItsExitCode(t *testing.T) {
	edit := func(old, now string) string { return strings.Replace(scenarioText, old, now, 1) }
	for name, tc := range map[string]struct {
		text     string
		args     []string
		code     int
		out, err string
	}{
		"completed":                   {scenarioText, nil, 0, "Completed", ""},
		"wide":                        {scenarioText, []string{"-o", "wide"}, 0, "2030-01-07T08:00:30Z", ""},
		"stands still":                {edit("spec:\n", "spec:\n  events: [{at: 0s, action: StopAll}]\n"), nil, usage.ExitRefused, "StoodStill", "stands still: 2 machines not there yet; w1: the stop switch"},
		"an event after the end":      {edit("spec:\n", "spec:\n  until: 2h\n  events: [{at: 1000h, action: Cordon, machine: w1}]\n"), nil, 0, "Completed", ""},
		"two deployments of one":      {edit("pool: workers}}, template", "pool: nobody}}, template") + conflicting, nil, usage.ExitRefused, "StoodStill", "stands still: 2 MachineDeployments not there yet; MachineDeployment/a: "},
		"not at its end in time":      {edit("spec:\n", "spec:\n  until: 1m\n"), nil, usage.ExitRefused, "TimedOut", "the simulated time is over"},
		"an unknown field":            {edit("count: 2", "number: 2"), nil, usage.ExitCode, "", "stdin:6: spec.machines[1].number: unknown field"},
		"no duration":                 {edit("spec:\n", "spec:\n  durations: {drain: soon}\n"), nil, usage.ExitCode, "", `stdin:4: spec.durations.drain: "soon" is no duration: give a duration such as 90s`},
		"a schema's own word":         {edit("kubelet: v1.37.2}}}}", "kubelet: 1.37}}}}"), nil, usage.ExitCode, "", "stdin:11: spec.template.spec.versions.kubelet: Invalid value"},
		"no machine of that name":     {edit("spec:\n", "spec:\n  events: [{at: 0s, action: Cordon, machine: w9}]\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.events[0].machine: there is no Machine/w9 in the scenario"},
		"no such action":              {edit("spec:\n", "spec:\n  events: [{at: 0s, action: Explode}]\n"), nil, usage.ExitCode, "", `spec.events[0].action: "Explode" is no action: it is Cordon, `},
		"a patch that is refused":     {edit("spec:\n", "spec:\n  events: [{at: 1m, action: Patch, object: MachineDeployment/workers, patch: {spec: {progressDeadline: soon}}}]\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.events[0]"},
		"a patch of an unknown field": {edit("spec:\n", "spec:\n  events: [{at: 1m, action: Patch, object: MachineDeployment/workers, patch: {spec: {strategy: {rollingUpdate: {maxUnavailabel: 2}}}}}]\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.events[0].patch.spec.strategy.rollingUpdate.maxUnavailabel: a MachineDeployment has no such field"},
		"a patch of a Node's field":   {edit("spec:\n", "spec:\n  events: [{at: 1m, action: Patch, object: Node/w1, patch: {spec: {unschedulabel: true}}}]\n"), nil, usage.ExitCode, "", "spec.events[0].patch.spec.unschedulabel: a Node has no such field"},
		"a patch of another type":     {edit("spec:\n", "spec:\n  events: [{at: 1m, action: Patch, object: Machine/w1, patch: {spec: {paused: soon}}}]\n"), nil, usage.ExitCode, "", "spec.events[0].patch.spec.paused: is a string, and a Machine has a bool there"},
		"a Node is not paused":        {edit("spec:\n", "spec:\n  events: [{at: 1m, action: Pause, object: Node/w1}]\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.events[0].object: Pause is not for a Node: name a Machine, or a MachineDeployment"},
		"a deployment is not deleted": {edit("spec:\n", "spec:\n  events: [{at: 1m, action: Delete, object: MachineDeployment/workers}]\n"), nil, usage.ExitCode, "", "spec.events[0].object: Delete is not for a MachineDeployment"},
		"an override of nobody":       {edit("spec:\n", "spec:\n  durations: {overrides: [{machines: [w1, w9], apply: 10m}]}\n"), nil, usage.ExitCode, "", "spec.durations.overrides[0].machines[1]: there is no Machine/w9 in the scenario"},
		"a look that goes back":       {edit("spec:\n", "spec:\n  look: -5s\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.look: has to be 0 or above"},
		"a check that is not there":   {edit("spec:\n", "spec:\n  checks: {error-rate: true}\n"), nil, usage.ExitCode, "", `spec.checks.error-rate: there is no check "error-rate" in the scenario`},
		"an answer of none":           {edit("spec:\n", "spec:\n  events: [{at: 1m, action: SetCheck, passes: true}]\n"), nil, usage.ExitCode, "", "spec.events[0].check: SetCheck needs the name of a check"},
		"a check without answer":      {edit("spec:\n", "spec:\n  events: [{at: 1m, action: SetCheck, check: error-rate}]\n"), nil, usage.ExitCode, "", "spec.events[0].passes: SetCheck needs to say whether the check passes"},
		"the answer of an expression": {edit("spec:\n", "spec:\n  checks: {r: true}\n") + checked, nil, usage.ExitCode, "", `spec.checks.r: check "r" is an expression, which is evaluated`},
		"a count of none":             {edit("count: 2", "count: 0"), nil, usage.ExitCode, "", "stdin:6: Simulation: spec.machines[1].count: has to be from 1 to"},
		"an end before the start":     {edit("spec:\n", "spec:\n  until: -1h\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.until: has to be above 0"},
		"a time before the start":     {edit("spec:\n", "spec:\n  events: [{at: 2001-01-01T00:00:00Z, action: StopAll}]\n"), nil, usage.ExitCode, "", "stdin:4: Simulation: spec.events[0].at: 2001-01-01T00:00:00Z is before the start"},
		"no machines":                 {"apiVersion: refit.dev/v1alpha1\nkind: Simulation\n", nil, usage.ExitCode, "", "Simulation: spec.machines: there is no machine"},
		"versions are not known":      {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec: {roles: [Worker]}\n", nil, usage.ExitCode, "", "stdin:1: Machine/w1: status.versions: what runs on it is not known"},
		"a format that is unknown":    {scenarioText, []string{"-o", "yaml"}, usage.ExitCode, "", `--output "yaml" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err, code := program(t, tc.text, append([]string{"simulate", "-f", "-"}, tc.args...)...)
			assert.Equal(t, tc.code, code, err)
			assert.Contains(t, out, tc.out)
			assert.Contains(t, err, tc.err)
		})
	}
}

func TestASimulationForProgramsIsOneObjectALine(t *testing.T) {
	out, _, code := program(t, scenarioText, "simulate", "-f", "-", "-o", "json")
	require.Equal(t, 0, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Greater(t, len(lines), 10)
	for i, line := range lines {
		var entry struct {
			Time, Action, Machine, Outcome string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		assert.NotEmpty(t, entry.Time)
		var keys map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &keys), line)
		for _, key := range []string{"time", "action", "machine", "reason", "message"} {
			assert.IsType(t, "", keys[key], "%s of %s", key, line)
		}
		assert.Equal(t, i == len(lines)-1, entry.Action == "Summary")
	}
	assert.Contains(t, lines[len(lines)-1], `"outcome":"Completed"`)
}
