// Package drains runs the drains of the slots in flight, each in a goroutine of its
// own, so that no reconcile ever waits for a pod. A drain lives as long as this
// process: after a restart it simply begins again, since pods that have left stay away.
package drains

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// State of a drain.
type State struct {
	Done bool
	// Err is why it did not succeed; nil after Done means that the pods have left.
	Err error
	// Message is how far it has come, for people.
	Message string
	// Warning is what a policy has left undone; "" when all was done.
	Warning string
}

// Runner starts and watches drains. All fields but Changed are needed.
type Runner struct {
	// Base ends every drain when it ends.
	Base context.Context //nolint:containedctx // the drains outlive the reconcile that starts them
	// Client of the cluster that has the nodes.
	Client kubernetes.Interface
	// Changed is told which machine's drain has news.
	Changed func(types.NamespacedName)

	mu      sync.Mutex
	runs    map[string]*run
	cluster *drain.Cluster // shared by all drains
}

type run struct {
	machine types.NamespacedName
	state   State
	cancel  context.CancelFunc
}

// Request is one drain to be done.
type Request struct {
	GrantID string
	Machine types.NamespacedName
	Node    string
	Options drain.Options
}

// Ensure starts the drain unless it is known, and returns its state.
func (r *Runner) Ensure(req Request) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.runs[req.GrantID]; known != nil {
		return known.state
	}
	if r.runs == nil {
		r.runs, r.cluster = map[string]*run{}, drain.NewCluster(r.Client)
	}
	ctx, cancel := context.WithCancel(r.Base)
	started := &run{machine: req.Machine, cancel: cancel, state: State{Message: "pods are being evicted"}}
	r.runs[req.GrantID] = started
	go r.drain(ctx, r.cluster, req)
	return started.state
}

// Forget ends the drain, if it runs, and everything known of it.
func (r *Runner) Forget(grantID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.runs[grantID]; known != nil {
		known.cancel()
		delete(r.runs, grantID)
	}
}

func (r *Runner) drain(ctx context.Context, cluster *drain.Cluster, req Request) {
	tracker := newTracker()
	req.Options.Progress = func(e drain.Event) {
		r.update(req.GrantID, State{Message: tracker.note(e)})
	}
	result, err := cluster.Drainer(req.Options).Drain(ctx, req.Node)
	if ctx.Err() != nil {
		return
	}
	r.update(req.GrantID, State{Done: true, Err: err, Message: summary(result), Warning: warning(result)})
}

func (r *Runner) update(grantID string, s State) {
	r.mu.Lock()
	known := r.runs[grantID]
	if known == nil || known.state.Done {
		r.mu.Unlock()
		return
	}
	known.state = s
	machine := known.machine
	r.mu.Unlock()
	if r.Changed != nil {
		r.Changed(machine)
	}
}

func summary(r drain.Result) string {
	text := status.Count(r.Evicted, "pod") + " evicted"
	if r.Deleted > 0 {
		text += fmt.Sprintf(", %d deleted past their budget by policy", r.Deleted)
	}
	if len(r.Remaining) > 0 {
		text += fmt.Sprintf(", %d left behind by policy", len(r.Remaining))
	}
	return text
}

// warning names what a policy has left behind, so that going on is never silent.
func warning(r drain.Result) string {
	var lines []string
	for _, p := range r.Remaining {
		lines = append(lines, "pod "+p.String())
	}
	for _, v := range r.Volumes {
		lines = append(lines, v.String())
	}
	if len(lines) == 0 {
		return ""
	}
	more := ""
	if left := len(lines) - mostNamed; left > 0 {
		lines, more = lines[:mostNamed], fmt.Sprintf("; and %d more", left)
	}
	return "the policy goes on with what has not left the node: " + strings.Join(lines, "; ") + more
}

// mostNamed keeps an event readable.
const mostNamed = 5

// tracker words the progress: how many pods are left, what is said of the node, and what
// holds the pod that needs a person most.
type tracker struct {
	blocked map[string]drain.Event
	node    string
}

func newTracker() *tracker { return &tracker{blocked: map[string]drain.Event{}} }

func (t *tracker) take(e drain.Event) {
	switch name := e.Namespace + "/" + e.Name; {
	case e.Kind == drain.EventBlocked:
		t.blocked[name] = e
	case e.Name == "":
		t.node = e.Message
	case e.Kind == drain.EventWarning: // the pod is no worse off
	default:
		delete(t.blocked, name)
		t.node = "" // it goes on
	}
}

func (t *tracker) note(e drain.Event) string {
	t.take(e)
	text := fmt.Sprintf("%d of %s left", e.Remaining, status.Count(e.Total, "pod"))
	if t.node != "" {
		text += "; " + t.node
	}
	if len(t.blocked) == 0 {
		return text
	}
	name := t.gravest()
	worst := t.blocked[name]
	text += fmt.Sprintf("; %s is blocked since %s (%s: %s)", name, worst.Since.UTC().Format(time.RFC3339), worst.Reason, worst.Message)
	if more := len(t.blocked) - 1; more > 0 {
		text += fmt.Sprintf("; %d more blocked", more)
	}
	return text
}

// gravest is the blocked pod that most needs a person, and of several the one of longest standing: the
// message names the same pod until that changes.
func (t *tracker) gravest() string {
	return slices.MinFunc(slices.Collect(maps.Keys(t.blocked)), func(a, b string) int {
		x, y := t.blocked[a], t.blocked[b]
		return cmp.Or(drain.CompareBlocked(x, y), x.Since.Compare(y.Since), cmp.Compare(a, b))
	})
}

// OwnPods leaves the coordinator's own pods out where no other node could take them.
func OwnPods(namespace, app string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return p.Namespace == namespace && p.Labels["app.kubernetes.io/name"] == app
	}
}
