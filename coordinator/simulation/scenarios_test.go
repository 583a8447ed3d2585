package simulation_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/cli/simulate"
	"github.com/refit-dev/refit/coordinator/simulation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// played is a scenario that has come to its end.
type played struct {
	*testing.T
	entries []simulation.Entry
	sum     simulation.Summary
	text    string
}

func play(t *testing.T, file string) *played {
	t.Helper()
	scenario, err := simulate.Read([]string{file}, "refit", nil)
	require.NoError(t, err)
	p, out := &played{T: t}, &bytes.Buffer{}
	printer := &simulate.Printer{Out: out, Format: "table"}
	e, err := simulation.New(scenario, func(entry simulation.Entry) {
		p.entries = append(p.entries, entry)
		printer.Entry(entry)
	})
	require.NoError(t, err)
	printer.Start = e.Start()
	simulation.Watch(t, e)
	p.sum, err = e.Run(context.Background())
	require.NoError(t, err)
	printer.Summary(p.sum, e.Now())
	p.text = out.String()
	return p
}

// first is where an action of a machine comes up, -1 for never.
func (p *played) first(action, machine string) int {
	return slices.IndexFunc(p.entries, func(e simulation.Entry) bool { return e.Action == action && e.Machine == machine })
}

func (p *played) firstOf(action, machine, reason string) int {
	return slices.IndexFunc(p.entries, func(e simulation.Entry) bool {
		return e.Action == action && e.Machine == machine && e.Reason == reason
	})
}

func (p *played) last(action, machine string) int {
	at := -1
	for i, e := range p.entries {
		if e.Action == action && e.Machine == machine {
			at = i
		}
	}
	return at
}

func (p *played) count(action, machine string) int {
	n := 0
	for _, e := range p.entries {
		if e.Action == action && e.Machine == machine {
			n++
		}
	}
	return n
}

// order says that each "Action machine" comes up, and for the first time after the one before it.
func (p *played) order(steps ...string) {
	p.Helper()
	before, name := -1, "the start"
	for _, s := range steps {
		action, machine, _ := strings.Cut(s, " ")
		at := p.first(action, machine)
		assert.Greater(p, at, before, "%s comes after %s", s, name)
		before, name = at, s
	}
}

func (p *played) never(action string, machines ...string) {
	p.Helper()
	for _, m := range machines {
		assert.Equal(p, -1, p.first(action, m), "%s of %s", action, m)
	}
}

// told says that a machine has an entry of the action with the reason, and that its message has the text.
func (p *played) told(action, machine, reason, text string) {
	p.Helper()
	for _, e := range p.entries {
		if e.Action == action && e.Machine == machine && e.Reason == reason && strings.Contains(e.Message, text) {
			return
		}
	}
	assert.Fail(p, "it is not told", "%s %s %s %q", action, machine, reason, text)
}

func (p *played) ends(outcome simulation.Outcome, most int) {
	p.Helper()
	assert.Equal(p, outcome, p.sum.Outcome)
	assert.Equal(p, most, p.sum.MostUnavailable, "machines away at once")
}

// serial says that each machine has its place back before the next one has one.
func (p *played) serial(machines ...string) {
	p.Helper()
	for i := 1; i < len(machines); i++ {
		assert.Greater(p, p.first("Reserve", machines[i]), p.first("Release", machines[i-1]), "%s after %s", machines[i], machines[i-1])
	}
}

func (p *played) minute(action, machine string) int {
	p.Helper()
	at := p.first(action, machine)
	require.GreaterOrEqual(p, at, 0, "%s %s", action, machine)
	return int(p.entries[at].Time.Sub(p.entries[0].Time.Truncate(24*3600*1e9)).Minutes()) - 8*60
}

const (
	completed  = simulation.Completed
	stoodStill = simulation.StoodStill
	timedOut   = simulation.TimedOut
)

// facts are what has to be seen of each scenario, whatever its golden file says.
var facts = map[string]func(*played){
	"three-workers":             func(p *played) { p.ends(completed, 1); p.serial("w1", "w2", "w3") },
	"rounding-half-of-eleven":   func(p *played) { p.ends(completed, 5) },
	"rounding-a-tenth-of-three": func(p *played) { p.ends(completed, 1) },
	"zero-budget": func(p *played) {
		p.ends(stoodStill, 0)
		p.never("Reserve", "w1", "w2")
		p.told("Wait", "w1", "BudgetExhausted", "MachineDisruptionBudget none")
	},
	"already-down-goes-first": func(p *played) {
		p.ends(completed, 1)
		p.order("Reserve w3", "Release w3", "Reserve w1", "Reserve w2")
	},
	"down-counts-in-the-budget": func(p *played) {
		p.ends(completed, 1)
		assert.GreaterOrEqual(p, p.minute("Reserve", "w2"), 60)
	},
	"foreign-cordon-is-skipped": func(p *played) {
		p.ends(completed, 2)
		p.told("Wait", "w2", "ForeignCordon", "left alone")
		p.serial("w1", "w3", "w4", "w2")
		assert.GreaterOrEqual(p, p.minute("Reserve", "w2"), 60)
	},
	"foreign-cordon-uses-up-the-budget": func(p *played) {
		assert.Equal(p, stoodStill, p.sum.Outcome)
		p.told("Wait", "m07", "ForeignCordon", "left alone")
		p.never("Reserve", "m01", "m03", "m04", "m07")
		p.told("Wait", "m01", "BudgetExhausted", "m07 cordoned by someone else")
	},
	"topology-domains": func(p *played) {
		p.ends(completed, 2)
		for _, next := range []string{"w2", "w5"} {
			assert.Greater(p, p.first("Reserve", next), max(p.first("Release", "w1"), p.first("Release", "w4")))
		}
		for _, next := range []string{"w3", "w6"} {
			assert.Greater(p, p.first("Reserve", next), max(p.first("Release", "w2"), p.first("Release", "w5")))
		}
	},
	"topology-with-a-failed-machine": func(p *played) {
		p.ends(stoodStill, 2)
		p.told("Fail", "w1", "VerifyFailed", "")
		p.order("Done w4", "Reserve w2")
		p.order("Done w3")
		p.never("Done", "w1")
	},
	"topology-with-a-cordoned-machine": func(p *played) {
		p.ends(stoodStill, 2)
		p.never("Reserve", "w1")
		p.order("Done w4", "Reserve w2", "Done w3")
	},
	"control-plane-first": func(p *played) {
		p.ends(completed, 1)
		assert.Greater(p, p.first("Reserve", "w1"), p.last("Verify", "cp3"))
	},
	"control-plane-managed-elsewhere": func(p *played) {
		p.ends(stoodStill, 0)
		p.told("Wait", "w1", "WaitingForControlPlane", "v1.36.3")
	},
	"mixed-control-plane": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		assert.Greater(p, p.first("Reserve", "w1"), p.first("Verify", "cp-b2"))
	},
	"control-plane-serial-whatever-the-pool-says": func(p *played) { p.ends(completed, 1) },
	"a-member-away-holds-the-others": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		p.told("Wait", "cp1", "ControlPlaneUnavailable", "cp2")
		assert.GreaterOrEqual(p, p.minute("Reserve", "cp1"), 30)
	},
	"member-left-halfway-is-tried-again-first": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		p.told("Wait", "cp3", "ControlPlaneUnavailable", "kubectl refit retry cp2")
		assert.Equal(p, 1, p.count("Fail", "cp2"))
		assert.GreaterOrEqual(p, p.minute("Reserve", "cp3"), 60, "the retry is at 1h")
		assert.Greater(p, p.first("Reserve", "cp3"), p.firstOf("Verify", "cp2", "Successful"))
	},
	"member-cordoned-by-a-person-holds-the-others": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		p.told("Wait", "cp1", "ControlPlaneUnavailable", "cp2")
		assert.GreaterOrEqual(p, p.minute("Reserve", "cp1"), 30)
		assert.GreaterOrEqual(p, p.minute("Reserve", "cp3"), 30)
	},
	"three-minors": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		assert.Equal(p, 1, p.count("Drain", "w1"), "one drain of a worker for three minors")
		p.told("Assign", "cp1", "Upgrade", "v1.35.6")
		p.told("Assign", "cp1", "Upgrade", "v1.36.3")
	},
	"four-minors-need-more-drains": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		assert.Equal(p, 2, p.count("Drain", "w1"))
	},
	"downgrade-is-refused":                func(p *played) { p.ends(stoodStill, 0); p.never("Assign", "w1", "w2") },
	"old-kubelet-holds-the-control-plane": func(p *played) { p.ends(stoodStill, 0); p.never("Assign", "cp1") },
	"patch-needs-no-drain":                func(p *played) { p.ends(completed, 0); p.never("Cordon", "w1", "w2", "w3") },
	"max-in-flight-default":               func(p *played) { p.ends(completed, 0); p.serial("w1", "w2", "w3", "w4") },
	"two-deployments-one-machine":         func(p *played) { p.ends(stoodStill, 0); p.told("Rollout", "", "DeploymentConflict", "racks selects") },
	"pause-and-resume": func(p *played) {
		p.ends(completed, 1)
		assert.GreaterOrEqual(p, p.minute("Grant", "w2"), 60)
		assert.Less(p, p.minute("Done", "w1"), 60)
	},
	"pause-takes-back-what-was-not-accepted": func(p *played) {
		p.ends(completed, 1)
		assert.Equal(p, 2, p.count("Reserve", "w1"))
		p.order("Cordon w1", "Pause ", "Uncordon w1", "TakeBack w1", "Resume ", "Grant w1")
	},
	"paused-machine": func(p *played) { p.ends(stoodStill, 1); p.never("Reserve", "w1"); p.order("Done w2", "Done w3") },
	"stop-switch": func(p *played) {
		p.ends(completed, 1)
		p.told("Wait", "w2", "Stopped", "stop switch")
		assert.GreaterOrEqual(p, p.minute("Grant", "w1"), 60)
	},
	"failure-then-retry": func(p *played) {
		p.ends(completed, 1)
		p.told("Fail", "w1", "VerifyFailed", "runs what it ran before")
		assert.GreaterOrEqual(p, p.minute("Reserve", "w2"), 60)
	},
	"failure-stands": func(p *played) { assert.Equal(p, stoodStill, p.sum.Outcome); p.never("Reserve", "w2", "w3") },
	"failure-threshold-of-two": func(p *played) {
		assert.Equal(p, stoodStill, p.sum.Outcome)
		p.never("Grant", "w5")
		p.order("Done w2")
	},
	"lost-before-it-begins": func(p *played) {
		p.ends(completed, 1)
		p.told("TakeBack", "w1", "SlotTakenBack", "the node was lost before the host began")
		assert.Less(p, p.first("TakeBack", "w1"), p.first("Grant", "w1"), "no grant is written for a host that is away")
	},
	"paused-itself-takes-back-what-drains": func(p *played) {
		assert.Equal(p, stoodStill, p.sum.Outcome)
		p.told("TakeBack", "w2", "SlotTakenBack", "the rollout paused itself after 1 failed: w1")
		p.never("Grant", "w2", "w3", "w4")
	},
	"spec-change-clears-a-failure": func(p *played) {
		p.ends(completed, 1)
		p.never("Event", "w1-retry")
		p.told("Assign", "w1", "Upgrade", "v1.37.1")
	},
	"spec-change-while-draining": func(p *played) {
		p.ends(completed, 1)
		p.order("Drain w1", "TakeBack w1", "Grant w1")
		p.told("TakeBack", "w1", "SlotTakenBack", "spec has changed")
	},
	"spec-change-while-applying": func(p *played) {
		p.ends(completed, 1)
		p.never("TakeBack", "w1")
		assert.Equal(p, 2, p.count("Apply", "w1"))
	},
	"budget-that-can-never-clear": func(p *played) {
		assert.Equal(p, stoodStill, p.sum.Outcome)
		p.told("Wait", "w1", "DrainImpossible", "shop")
		p.never("Cordon", "w1")
		p.order("Done w2")
	},
	"budget-that-clears": func(p *played) { p.ends(completed, 1); assert.GreaterOrEqual(p, p.sum.Evictions, 2) },
	"budget-is-opened-by-a-person": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		assert.GreaterOrEqual(p, p.minute("Cordon", "w1"), 60)
	},
	"pod-without-a-controller": func(p *played) {
		assert.Equal(p, stoodStill, p.sum.Outcome)
		p.told("Wait", "w1", "DrainImpossible", "lonely")
		p.never("Evict", "w1")
		p.order("Done w2")
	},
	"single-worker":          func(p *played) { p.ends(stoodStill, 0); p.told("Wait", "w1", "NoCapacity", "singleNode") },
	"single-worker-in-place": func(p *played) { p.ends(completed, 1) },
	"out-of-service": func(p *played) {
		p.ends(completed, 1)
		p.never("Reserve", "w1")
		assert.Equal(p, 1, p.sum.States["OutOfService"])
	},
	"standby":             func(p *played) { assert.Equal(p, completed, p.sum.Outcome); p.order("Done w3") },
	"budget-across-pools": func(p *played) { p.ends(completed, 1) },
	"budget-across-pools-by-zone": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		assert.LessOrEqual(p, p.sum.MostUnavailable, 3)
	},
	"min-available": func(p *played) { p.ends(completed, 1) },
	"machine-deleted-in-flight": func(p *played) {
		p.ends(completed, 1)
		p.order("Accept w1", "Verify w1", "Gone w1", "Done w3")
		p.never("TakeBack", "w1")
	},
	"machine-deleted-while-draining": func(p *played) {
		p.ends(completed, 1)
		p.order("Cordon w1", "Uncordon w1", "Gone w1", "Done w2")
		p.never("Grant", "w1")
	},
	"node-missing": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		assert.GreaterOrEqual(p, p.minute("Reserve", "w2"), 60)
		p.told("Wait", "w1", "NodeReplaced", "another machine")
	},
	"unreachable-for-five-minutes": func(p *played) {
		p.ends(completed, 1)
		p.told("Fail", "w1", "Unreachable", "see to the host")
		p.order("Fail w1", "Release w1", "Reserve w2")
		assert.Equal(p, 1, p.count("Apply", "w1"))
	},
	"next-waits-for-the-last-to-be-well": func(p *played) {
		p.ends(completed, 1)
		assert.GreaterOrEqual(p, p.minute("Reserve", "w2"), 30)
	},
	"uncordoned-by-a-person": func(p *played) { p.ends(completed, 1); p.told("Fail", "w1", "Uncordoned", "") },
	"soak": func(p *played) {
		p.ends(completed, 1)
		assert.GreaterOrEqual(p, p.minute("Reserve", "w2"), 15)
		p.order("Soak w1", "Release w1")
	},
	"override-of-a-field": func(p *played) { p.ends(completed, 1); p.never("Assign", "w1"); p.order("Done w2") },
	"window": func(p *played) {
		assert.Equal(p, completed, p.sum.Outcome)
		p.told("Wait", "w1", "OutsideWindow", "22:00")
	},
	"canary": func(p *played) {
		p.ends(completed, 2)
		p.told("Wait", "w2", "CanaryPending", "w1")
		assert.Greater(p, p.first("Reserve", "w2"), p.first("Release", "w1"))
	},
	"check-by-expression": func(p *played) {
		p.ends(completed, 2)
		p.told("Wait", "w1", "CheckFailed", `check "pods-ready" of MachineDeployment workers does not pass: the expression is false`)
		change, goes := p.first("Event", ""), p.first("Reserve", "w1")
		require.Greater(p, goes, change)
		assert.LessOrEqual(p, p.entries[goes].Time.Sub(p.entries[change].Time), 10*time.Second, "that is how often it is asked")
	},
	"check-that-is-false": func(p *played) {
		p.ends(stoodStill, 0)
		p.told("Wait", "w1", "CheckFailed", "the expression is false")
		p.never("Reserve", "w1", "w2", "w3")
	},
	"check-that-cannot-be-asked": func(p *played) {
		p.ends(stoodStill, 0)
		p.told("Wait", "w1", "CheckInvalid", "cannot be compiled")
		p.told("Rollout", "", "CheckInvalid", "cannot be compiled")
		p.never("Reserve", "w1", "w2", "w3")
	},
	"check-of-prometheus": func(p *played) {
		p.ends(completed, 2)
		p.told("Check", "", "Assumed", `"error-rate"`)
		assert.Equal(p, 1, p.count("Check", ""))
	},
	"check-of-prometheus-by-scenario": func(p *played) {
		p.ends(completed, 2)
		assert.Equal(p, 30, p.minute("Reserve", "w1"))
		assert.Equal(p, 30, p.minute("Reserve", "w2"))
		assert.Equal(p, 120, p.minute("Reserve", "w3"))
		assert.Equal(p, 0, p.count("Check", ""), "the scenario has the answer")
		p.told("Wait", "w3", "CheckFailed", "the scenario says so")
	},
	"etcd-alone-goes-first": func(p *played) {
		p.ends(completed, 1)
		p.order("Done etcd1", "Reserve etcd2", "Done etcd2", "Reserve etcd3", "Done etcd3", "Reserve cp1")
		p.told("Wait", "cp1", "WaitingForEtcd", "what stores goes first")
	},
	"longest-durations": func(p *played) { p.ends(completed, 2); p.order("Done w5", "Done w1") },
}

func TestScenariosGoAsTheirTranscriptsSay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), 40)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			p := play(t, file)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(golden, []byte(p.text), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), p.text, "the rollout goes another way now: read the difference, and write it anew with make golden if it is meant")
			require.Contains(t, facts, name, "say what has to be seen of it")
			facts[name](p)
			assert.Equal(t, p.text, play(t, file).text, "the same scenario gives the same transcript")
		})
	}
	assert.Len(t, facts, len(files))
}
