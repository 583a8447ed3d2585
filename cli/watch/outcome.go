package watch

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is what --until-done waits for.
type Outcome struct {
	// Over says that there is nothing more to wait for.
	Over bool
	// Halted says that it is so because a rollout waits for a person.
	Halted  bool
	Message string
}

// Outcome of the pools: over when all are up to date, or when one has paused itself. One that a person has paused is waited for.
func (f *Fleet) Outcome(now time.Time) Outcome {
	_, pools := f.table(now)
	var names []string
	for _, p := range pools {
		switch {
		case p.verdict == halted:
			return Outcome{Over: true, Halted: true, Message: fmt.Sprintf("pool %s does not go on by itself: %s", p.name, p.says)}
		case p.verdict != complete || p.count[atWork] > 0:
			return Outcome{}
		}
		names = append(names, p.name)
	}
	if len(names) == 0 {
		return Outcome{}
	}
	return Outcome{Over: true, Message: "up to date: " + strings.Join(names, ", ")}
}
