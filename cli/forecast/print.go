package forecast

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/refit-dev/refit/pkg/drain"
)

// Print writes the table, and below it what is in the way and what to type.
func Print(out io.Writer, l List, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := "NODE\tPODS\tGO-NOW\tWAIT\tNEVER\tREASON"
	warnings := l.warnings()
	if len(warnings) > 0 {
		header += "\tWARNINGS"
	}
	if wide {
		header += "\tMACHINE\tIGNORED\tVOLUMES"
	}
	fmt.Fprintln(w, header)
	for _, i := range l.Items {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s", i.Node, len(i.Pods), i.Count(drain.OutlookNow), i.Count(drain.OutlookWait), i.Count(drain.OutlookNever), orDash(i.Reason))
		if len(warnings) > 0 {
			fmt.Fprintf(w, "\t%d", i.warned())
		}
		if wide {
			fmt.Fprintf(w, "\t%s\t%d\t%d", orDash(i.Machine), len(i.Ignored), len(i.Volumes))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, s := range []struct {
		title   string
		outlook drain.Outlook
	}{{"Never", drain.OutlookNever}, {"Waits", drain.OutlookWait}} {
		if lines := l.inTheWay(s.outlook); len(lines) > 0 {
			fmt.Fprintf(out, "\n%s:\n  %s\n", s.title, strings.Join(lines, "\n  "))
		}
	}
	for _, s := range []struct {
		title string
		lines []string
	}{{"Warnings", warnings}, {"Notes", l.notes()}} {
		if len(s.lines) > 0 {
			fmt.Fprintf(out, "\n%s:\n  %s\n", s.title, strings.Join(s.lines, "\n  "))
		}
	}
	return nil
}

// warned counts the pods with a warning.
func (i Item) warned() int {
	n := 0
	for _, p := range i.Pods {
		if p.Warning != "" {
			n++
		}
	}
	return n
}

// warnings are what may come of pods though nothing is in their way.
func (l List) warnings() []string {
	var lines []string
	for _, i := range l.Items {
		for _, p := range i.Pods {
			if p.Warning != "" {
				lines = append(lines, fmt.Sprintf("pod %s/%s on %s: %s", p.Namespace, p.Name, i.Node, p.Warning))
			}
		}
	}
	return lines
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// inTheWay are the lines of what holds pods with this outlook: budgets once, then pods.
func (l List) inTheWay(of drain.Outlook) []string {
	var lines []string
	for _, b := range l.Budgets {
		if b.Outlook != of {
			continue
		}
		lines = append(lines, b.words())
		for _, p := range b.Unready {
			lines = append(lines, "  waits for pod "+p.String())
		}
		if b.Help != "" {
			lines = append(lines, "  "+b.Help)
		}
	}
	for _, i := range l.Items {
		ofNode := i.Reason == reasonNoCapacity || i.Reason == drain.ReasonNodeUnreachable || strings.HasPrefix(i.Message, "node "+i.Node+" ")
		if i.Outlook == of && ofNode {
			lines = append(lines, fmt.Sprintf("node %s: %s", i.Node, i.Message))
		}
		for _, p := range i.Pods {
			if p.Outlook != of || p.Reason == drain.ReasonEvictionBlocked {
				continue
			}
			lines = append(lines, fmt.Sprintf("pod %s/%s on %s: %s", p.Namespace, p.Name, i.Node, p.Message))
			if p.Help != "" {
				lines = append(lines, "  "+p.Help)
			}
		}
	}
	return lines
}

func (l List) notes() []string {
	var lines []string
	for _, i := range l.Items {
		if i.LoadBalancerDelay != nil && len(i.Pods) > 0 {
			lines = append(lines, fmt.Sprintf("node %s: load balancers have %s to leave it out before the first pod is evicted", i.Node, i.LoadBalancerDelay.Duration))
		}
		for _, v := range i.Volumes {
			lines = append(lines, fmt.Sprintf("node %s: %s has to be detached before the reboot", i.Node, v))
		}
		if i.OnlyNode && i.Reason != reasonNoCapacity && len(i.Pods) > 0 {
			lines = append(lines, fmt.Sprintf("node %s: no other node takes its pods now, and they stay pending until one does", i.Node))
		}
		for _, u := range i.Unknown { // mostly the same of each node
			if line := "not foreseen: " + u; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
