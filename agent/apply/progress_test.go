package apply_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a step that began some seconds after the start, and ended, unless that is 0.
func at(kind upgrade.StepKind, state journal.StepState, from, to int, message string) journal.StepRecord {
	s := journal.StepRecord{Kind: kind, State: state, Message: message}
	if from >= 0 {
		begun := start.Add(time.Duration(from) * time.Second)
		s.Start = &begun
	}
	if to > 0 {
		end := start.Add(time.Duration(to) * time.Second)
		s.End = &end
	}
	return s
}

func recordOf(steps ...journal.StepRecord) journal.Record {
	r := journal.Record{Steps: steps}
	for _, s := range steps {
		r.Operation.Plan.Steps = append(r.Operation.Plan.Steps, upgrade.Step{Kind: s.Kind})
	}
	return r
}

// show gives the records of an operation one after the other, a number of seconds after its start.
func show(p *apply.Progress, looks map[int]journal.Record, order ...int) string {
	var out bytes.Buffer
	p.W = &out
	for _, after := range order {
		p.Now = func() time.Time { return start.Add(time.Duration(after) * time.Second) }
		p.Show(apply.Look{Record: looks[after]})
	}
	p.Close()
	return out.String()
}

func looks() map[int]journal.Record {
	pending := at(upgrade.StepVerify, journal.StepPending, -1, 0, "")
	return map[int]journal.Record{
		1:  recordOf(at(upgrade.StepPreflight, journal.StepBegun, 0, 0, ""), at(upgrade.StepKubeadmUpgrade, journal.StepPending, -1, 0, ""), pending),
		3:  recordOf(at(upgrade.StepPreflight, journal.StepDone, 0, 2, ""), at(upgrade.StepKubeadmUpgrade, journal.StepBegun, 2, 0, ""), pending),
		14: recordOf(at(upgrade.StepPreflight, journal.StepDone, 0, 2, ""), at(upgrade.StepKubeadmUpgrade, journal.StepBegun, 2, 0, ""), pending),
		15: recordOf(at(upgrade.StepPreflight, journal.StepDone, 0, 2, ""), at(upgrade.StepKubeadmUpgrade, journal.StepBegun, 2, 0, ""), pending),
		16: recordOf(at(upgrade.StepPreflight, journal.StepDone, 0, 2, ""), at(upgrade.StepKubeadmUpgrade, journal.StepBegun, 2, 0, "waiting for dpkg"), pending),
		90: recordOf(at(upgrade.StepPreflight, journal.StepDone, 0, 2, ""), at(upgrade.StepKubeadmUpgrade, journal.StepFailed, 2, 80, "no\nanswer"), pending),
	}
}

func TestALogHasALineForEachStepAndForOneThatTakesLong(t *testing.T) {
	got := show(&apply.Progress{}, looks(), 1, 3, 14, 15, 16, 90, 90)
	assert.Equal(t, strings.TrimPrefix(`
     STEP  STATE     ELAPSED  WHAT
      1/3  done           2s  Preflight
      2/3  running       12s  KubeadmUpgrade
      2/3  running       14s  KubeadmUpgrade, waiting for dpkg
      2/3  failed      1m18s  KubeadmUpgrade (no answer)
`, "\n"), got)
}

func TestWhatIsUndoneHasLinesOfItsOwn(t *testing.T) {
	r := looks()[90]
	back := upgrade.Step{Kind: upgrade.StepRestartUnit, Unit: "kubelet.service"}
	undone := at(back.Kind, journal.StepDone, 80, 85, "")
	undone.Step = &back
	r.Rollback = []journal.StepRecord{undone, at(upgrade.StepVerify, journal.StepPending, -1, 0, "")}
	got := show(&apply.Progress{}, map[int]journal.Record{95: r}, 95)
	assert.Contains(t, got, " undo 1/2  done           5s  RestartUnit: kubelet.service\n")
	assert.NotContains(t, got, "undo 2/2", "not begun")
}

func TestAStepThatNobodyWorksOnIsNotShownAsOneThatRuns(t *testing.T) {
	for name, width := range map[string]int{"log": 0, "terminal": 80} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &apply.Progress{W: &out, Width: width, Now: func() time.Time { return start.Add(16 * time.Second) }}
			p.Show(apply.Look{Record: looks()[16]})
			p.Show(apply.Look{Record: looks()[16], Dead: true})
			p.Show(apply.Look{Record: looks()[16], Dead: true})
			p.Close()
			assert.Contains(t, out.String(), "      2/3  stopped       14s  KubeadmUpgrade, its executor has ended\n")
			assert.Equal(t, 1, strings.Count(out.String(), "stopped"))
		})
	}
}

func TestATerminalHasOneLineThatLives(t *testing.T) {
	got := show(&apply.Progress{Width: 40}, looks(), 1, 3, 16)
	lines := strings.Split(got, "\n")
	assert.Len(t, lines, 4, "%q", got)
	assert.Equal(t, "\r\x1b[K      1/3  done           2s  Preflight", lines[1][strings.LastIndex(lines[1], "\r"):])
	last := lines[2][strings.LastIndex(lines[2], "\x1b[K")+3:]
	assert.LessOrEqual(t, len([]rune(last)), 39, "it does not wrap: it could not be written over")
	assert.Contains(t, last, "running")
	assert.NotContains(t, got, "\x1b[3", "no colour unless asked for")
}

func TestColourIsOfTheStateAlone(t *testing.T) {
	got := show(&apply.Progress{Colour: true}, looks(), 90)
	assert.Contains(t, got, "      1/3  \x1b[32mdone\x1b[0m           2s  Preflight\n")
	assert.Contains(t, got, "  \x1b[31mfailed\x1b[0m  ")
}
