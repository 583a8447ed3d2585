// Package logs finds what an executor printed. It runs on the host and logs to the host's journal, which is not
// reachable through the API server, but for kubelets that answer log queries (enableSystemLogQuery).
package logs

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/usage"
)

// resumeUnit goes on with an operation after a boot.
const resumeUnit = "refit-resume"

// most bytes of one unit that are read: an executor prints far less.
const most = 16 << 20

// Operation is one that a Machine knows of.
type Operation struct {
	ID    string
	Start *time.Time
	// Lines for people: what the API server knows of it.
	Lines []string
}

// Find is the operation with that id, or the last one. An Operation without an ID is none.
func Find(m *v1alpha1.Machine, id string) (Operation, error) {
	var known []string
	if op := m.Status.LastOperation; op != nil {
		if id == "" || id == op.ID {
			return ofStatus(op), nil
		}
		known = append(known, op.ID)
	}
	for _, h := range m.Status.History {
		if id == "" || id == h.ID {
			return ofHistory(h), nil
		}
		known = append(known, h.ID)
	}
	if id != "" {
		return Operation{}, usage.Errorf("machine %s knows of no operation %s: there are %s", m.Name, id, strings.Join(append(known, "no others"), ", "))
	}
	return Operation{}, nil
}

func ofStatus(op *v1alpha1.Operation) Operation {
	out := Operation{ID: op.ID, Lines: []string{fmt.Sprintf("operation %s (%s): %s, %s", op.ID, op.Type, op.State, status.Progress(op))}}
	if op.StartTime != nil {
		out.Start = &op.StartTime.Time
	}
	for _, text := range []string{op.Reason, op.Description} {
		if text != "" {
			out.Lines = append(out.Lines, redact.URIs(text))
		}
	}
	return out
}

func ofHistory(h v1alpha1.HistoryEntry) Operation {
	out := Operation{ID: h.ID, Lines: []string{strings.TrimSpace(fmt.Sprintf("operation %s (%s): %s %s", h.ID, h.Type, h.State, h.Reason))}}
	if h.StartTime != nil {
		out.Start = &h.StartTime.Time
	}
	return out
}

// Unit is the unit of an operation on its host.
func Unit(id string) string { return "refit-op-" + id }

// Elsewhere is why a kubelet does not give the journal of its host.
type Elsewhere struct{ Reason string }

// Error implements error.
func (e Elsewhere) Error() string { return e.Reason }

// Read asks the kubelet of a node for the journal of an operation, and of what went on with it after a boot.
func Read(ctx context.Context, core rest.Interface, node string, op Operation, tail int) (string, error) {
	text, err := query(ctx, core, node, Unit(op.ID), nil, tail)
	if err != nil {
		return "", err
	}
	if op.Start == nil {
		return text, nil
	}
	resumed, err := query(ctx, core, node, resumeUnit, op.Start, tail)
	if err != nil || resumed == "" {
		return text, nil //nolint:nilerr // most hosts have not booted meanwhile, and have no such journal
	}
	return text + "-- " + resumeUnit + ".service --\n" + resumed, nil
}

func query(ctx context.Context, core rest.Interface, node, unit string, since *time.Time, tail int) (string, error) {
	// with its slash: without it the kubelet looks for a file
	req := core.Get().AbsPath("/api/v1/nodes/"+node+"/proxy/logs/").Param("query", unit)
	if since != nil {
		req = req.Param("sinceTime", since.UTC().Format(time.RFC3339))
	}
	if tail > 0 {
		req = req.Param("tailLines", strconv.Itoa(tail))
	}
	body, err := req.Stream(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return "", Elsewhere{"you may not ask kubelets (get on nodes/proxy): " + err.Error()}
	case apierrors.IsNotFound(err):
		return "", Elsewhere{"there is no Node " + node + ", or its kubelet has no logs endpoint"}
	case err != nil:
		return "", Elsewhere{"the kubelet does not answer: " + err.Error()}
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, most))
	if err != nil {
		return "", Elsewhere{"the kubelet's answer broke off: " + err.Error()}
	}
	if why := Refusal(string(text)); why != "" {
		return "", Elsewhere{why}
	}
	return redact.URIs(string(text)), nil
}

// Refusal is why an answer of a kubelet is no journal; "" of one that is. All of these come with status 200.
func Refusal(text string) string {
	start := strings.ToLower(strings.TrimSpace(text[:min(len(text), 512)]))
	switch {
	case start == "":
		return "the kubelet answered with nothing"
	case strings.HasPrefix(start, "<pre>"), strings.HasPrefix(start, "<!doctype"), strings.HasPrefix(start, "<html"):
		return "the kubelet does not answer log queries (it needs enableSystemLogHandler and enableSystemLogQuery in its configuration, and feature gate NodeLogQuery before v1.36)"
	case strings.HasPrefix(start, "log not found for "), strings.HasPrefix(start, "options present and query resolved to log files for "),
		strings.HasPrefix(start, "-- no entries --"):
		return "the journal of the host has nothing of that unit: it may have been rotated away, or live in memory and be gone with the last boot"
	case strings.HasPrefix(start, "error: journal output not available"), strings.HasPrefix(start, "failed to get logging cmd"):
		return "the kubelet could not read the journal of its host"
	}
	return ""
}
