package drain

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeTimeout bounds one look at the node.
const nodeTimeout = 15 * time.Second

// nodeState is what the cluster says of the node.
type nodeState struct {
	looked      time.Time
	unreachable time.Time // since when nothing was heard of its kubelet; zero when it was
	trouble     string    // why its pods may not end, for people; "" when it is well
}

// readNode makes sure of the node before anything is done to its pods.
func (r *run) readNode(ctx context.Context) error {
	return r.persist(ctx, r.deadline, func() error {
		n, err := r.getNode(ctx)
		if err == nil {
			r.judgeNode(n)
		}
		return err
	})
}

func (r *run) getNode(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	n, err := r.client.CoreV1().Nodes().Get(ctx, r.node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading node %s: %w", r.node, err)
	}
	return n, nil
}

func (r *run) judgeNode(n *corev1.Node) {
	before := r.health.trouble
	r.health = nodeState{looked: time.Now()}
	if ready := readyCondition(n); ready != nil {
		since := ready.LastTransitionTime.Time
		switch ready.Status {
		case corev1.ConditionUnknown:
			r.health.unreachable = since
			r.health.trouble = fmt.Sprintf("node %s has been unreachable since %s, and its kubelet ends no pod until it is back", n.Name, utc(since))
		case corev1.ConditionFalse:
			r.health.trouble = fmt.Sprintf("node %s has not been ready since %s (%s)", n.Name, utc(since), ready.Message)
		case corev1.ConditionTrue:
		}
	}
	if r.health.trouble != "" && r.health.trouble != before {
		r.say(EventWarning, r.nodeReason(), r.health.trouble)
	}
}

func readyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func (r *run) nodeReason() string {
	if !r.health.unreachable.IsZero() {
		return ReasonNodeUnreachable
	}
	return ReasonPodsTerminating
}

// watchOver says of each pod that should have ended by now that it has not, and why. The
// node is looked at only while there is such a pod, and not often.
func (r *run) watchOver(ctx context.Context) {
	late := r.late(time.Now())
	if len(late) == 0 {
		return
	}
	if time.Since(r.health.looked) >= r.pace.node {
		if n, err := r.getNode(ctx); err == nil {
			r.judgeNode(n)
		} else {
			r.health.looked = time.Now()
		}
	}
	for _, e := range late {
		r.blame(e, r.nodeReason(), r.whyLate(e))
	}
}

// blame says what keeps a leaving pod. It stays a leaving one.
func (r *run) blame(e *entry, reason, message string) {
	news := e.reason != reason || e.message != message
	e.reason, e.message, e.lateSaid = reason, message, true
	if news {
		r.emit(EventBlocked, e.pod, reason, message)
	}
}

// late are the pods whose deletion should be over.
func (r *run) late(now time.Time) []*entry {
	var out []*entry
	for _, e := range r.ordered() {
		if at := r.lateAt(e); !at.IsZero() && !now.Before(at) {
			out = append(out, e)
		}
	}
	return out
}

// lateAt is when a leaving pod is overdue; zero for one that is not leaving.
func (r *run) lateAt(e *entry) time.Time {
	if e.state != stateLeaving || e.pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	if !r.health.unreachable.IsZero() {
		return e.since // nobody is there to end it
	}
	return e.pod.DeletionTimestamp.Add(r.pace.late)
}

func (r *run) whyLate(e *entry) string {
	text := "is to have ended by " + utc(e.pod.DeletionTimestamp.Time)
	if r.health.trouble != "" {
		text += "; " + r.health.trouble
	}
	if len(e.pod.Finalizers) > 0 {
		text += "; finalizers hold it: " + strings.Join(e.pod.Finalizers, ", ")
	}
	if r.opts.SkipWaitForDeleteTimeout == 0 {
		text += "; drain.skipWaitForDeleteTimeout goes on without such pods"
	}
	return text
}

// unreachableUntil is when the drain ends because the node does not come back; zero when it does not.
func (r *run) unreachableUntil() time.Time {
	if r.health.unreachable.IsZero() || r.opts.OnTimeout != ActionFail || r.opts.SkipWaitForDeleteTimeout > 0 || len(r.entries) == 0 {
		return time.Time{}
	}
	until := r.start.Add(r.pace.hopeless)
	if at := r.health.unreachable.Add(r.pace.hopeless); at.After(until) {
		until = at
	}
	for _, e := range r.entries {
		at := r.lateAt(e)
		if at.IsZero() {
			return time.Time{} // there is something else to be done
		}
		if at.After(until) {
			until = at
		}
	}
	return until
}

// lost ends a drain whose pods cannot end, long before its deadline.
func (r *run) lost() error {
	if at := r.unreachableUntil(); at.IsZero() || time.Now().Before(at) {
		return nil
	}
	return r.stillThere("no pod ends before the node is back", r.remaining())
}

// nodeAlarm is when watchOver or lost have something to do next; far away when they do not.
func (r *run) nodeAlarm() time.Time {
	at := r.deadline
	for _, e := range r.entries {
		late := r.lateAt(e)
		if late.IsZero() {
			continue
		}
		if e.lateSaid { // it is known; the node may come back
			late = r.health.looked.Add(r.pace.node)
		}
		if late.Before(at) {
			at = late
		}
	}
	if until := r.unreachableUntil(); !until.IsZero() && until.Before(at) {
		return until
	}
	return at
}
