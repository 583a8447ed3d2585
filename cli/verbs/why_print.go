package verbs

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// PrintExplanation writes it for people.
func PrintExplanation(out io.Writer, e Explanation, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	pool := "no pool"
	if e.Pool != "" {
		pool = "pool " + e.Pool
	}
	since := ""
	if e.Since != nil {
		since = ", since " + duration.HumanDuration(now.Sub(e.Since.Time))
	}
	fmt.Fprintf(w, "machine %s (%s): %s%s\n", e.Machine, pool, e.Standing, since)
	if e.Message != "" {
		text := e.Message
		if e.Reason != "" {
			text = e.Reason + ": " + text
		}
		fmt.Fprintln(w, breaks.Replace(text))
	}
	if len(e.HeldBy) > 0 {
		fmt.Fprintln(w, "held by "+listed(e.HeldBy))
	}
	if e.Until != nil {
		fmt.Fprintf(w, "until %s, in %s\n", e.Until.UTC().Format(time.RFC3339), duration.HumanDuration(e.Until.Sub(now)))
	}
	for _, command := range e.Type {
		fmt.Fprintln(w, "  "+command)
	}
	if e.Coordinator != nil {
		fmt.Fprintf(w, "the coordinator's last word is %s: %s\n", e.Coordinator.Reason, breaks.Replace(e.Coordinator.Message))
	}
	if err := flush(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	row(w, "GATE", "VERDICT", "REASON", "MESSAGE")
	for _, j := range e.Gates {
		verdict := "pass"
		if !j.Passes {
			verdict = "veto"
		}
		row(w, j.Gate, verdict, j.Reason, j.Message)
	}
	if len(e.InFlight) > 0 {
		fmt.Fprintln(w)
		row(w, "IN-FLIGHT", "POOL", "STATE", "DISRUPTION", "SINCE")
		for _, h := range e.InFlight {
			row(w, h.Machine, h.Pool, h.State, h.Disruption, duration.HumanDuration(now.Sub(h.Since.Time)))
		}
	}
	return flush(w)
}
