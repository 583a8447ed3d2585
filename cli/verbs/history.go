package verbs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/refit-dev/refit/pkg/usage"
)

// Revision is one template that a pool has had.
type Revision struct {
	Revision    int64                    `json:"revision"`
	Name        string                   `json:"name"`
	Current     bool                     `json:"current"`
	ChangeCause string                   `json:"changeCause,omitempty"`
	Created     metav1.Time              `json:"created"`
	Template    v1alpha1.MachineTemplate `json:"template"`
}

// History is what a pool has been asked for, the oldest first.
func History(ctx context.Context, cl client.Reader, d *v1alpha1.MachineDeployment) ([]Revision, error) {
	known, err := machinedeployment.Revisions(ctx, cl, d)
	if err != nil {
		return nil, err
	}
	now, err := machinedeployment.CurrentOf(d, known)
	if err != nil {
		return nil, err
	}
	out := []Revision{}
	for _, r := range known {
		template, err := machinedeployment.TemplateOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, Revision{
			Revision: r.Revision, Name: r.Name, Current: r == now, ChangeCause: r.Annotations[machinedeployment.AnnotationChangeCause],
			Created: r.CreationTimestamp, Template: template,
		})
	}
	return out, nil
}

// FindRevision is the revision of that number.
func FindRevision(pool string, all []Revision, number int64) (Revision, error) {
	var numbers []string
	for _, r := range all {
		if r.Revision == number {
			return r, nil
		}
		numbers = append(numbers, fmt.Sprint(r.Revision))
	}
	return Revision{}, usage.Errorf("pool %s has no revision %d: there are %s", pool, number, listed(numbers))
}

// PrintRevisions writes revisions as a table; the current one has a star.
func PrintRevisions(out io.Writer, all []Revision, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row(w, "REVISION", "AGE", "VERSIONS", "CHANGE-CAUSE")
	for _, r := range all {
		number := fmt.Sprint(r.Revision)
		if r.Current {
			number += " *"
		}
		row(w, number, duration.HumanDuration(now.Sub(r.Created.Time)), status.Wish(r.Template.Spec.Versions), r.ChangeCause)
	}
	return flush(w)
}

// PrintOperations writes what was done on a machine as a table, the newest first.
func PrintOperations(out io.Writer, history []v1alpha1.HistoryEntry, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row(w, "ENDED", "TYPE", "OUTCOME", "FROM", "TO", "TOOK", "PHASES", "GRANT")
	for _, h := range history {
		row(w, ended(h, now), h.Type, outcomeOf(h), status.Wish(h.From), targetOf(h), took(h), phasesOf(h), h.ID)
	}
	return flush(w)
}

func ended(h v1alpha1.HistoryEntry, now time.Time) string {
	if h.EndTime == nil {
		return ""
	}
	return duration.HumanDuration(now.Sub(h.EndTime.Time)) + " ago"
}

func outcomeOf(h v1alpha1.HistoryEntry) string {
	if h.Reason == "" {
		return string(h.State)
	}
	return string(h.State) + " (" + h.Reason + ")"
}

func targetOf(h v1alpha1.HistoryEntry) string {
	if h.Target == nil {
		return ""
	}
	var parts []string
	for part, is := range map[string]bool{status.Wish(&h.Target.Versions): true, "packages and settings": h.Target.OS, "certificates": h.Target.Certificates} {
		if is && part != "" {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func took(h v1alpha1.HistoryEntry) string {
	if h.StartTime == nil || h.EndTime == nil {
		return ""
	}
	return h.EndTime.Sub(h.StartTime.Time).Round(time.Second).String()
}

func phasesOf(h v1alpha1.HistoryEntry) string {
	parts := make([]string, 0, len(h.Phases))
	for _, p := range h.Phases {
		d := p.Duration.Duration
		if d > time.Second {
			d = d.Round(100 * time.Millisecond)
		}
		parts = append(parts, p.Name+"="+d.String())
	}
	return strings.Join(parts, " ")
}
