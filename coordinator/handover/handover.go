// Package handover gives the lead away before the node is emptied on which the leader runs. A leader that drained its own
// node would be evicted by itself, and what it had in mind would begin anew with the next one, after the end of its pod.
package handover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// Pod is what a coordinator knows of its own pod.
type Pod struct{ Namespace, Name, UID, Node string }

// Seat is the place of a coordinator that runs in the cluster whose nodes it upgrades.
type Seat struct {
	Pod
	// App is the label app.kubernetes.io/name of all coordinators.
	App string
	// Workload is the cluster that has the nodes.
	Workload kubernetes.Interface
	// Leave ends the lead.
	Leave func()
}

// Take looks whether the pod is one of the cluster with the nodes; nil where this coordinator runs elsewhere.
func Take(ctx context.Context, workload kubernetes.Interface, own Pod, app string) (*Seat, error) {
	if own.Namespace == "" || own.Name == "" || own.Node == "" {
		return nil, nil //nolint:nilnil // no seat is an answer
	}
	p, err := workload.CoreV1().Pods(own.Namespace).Get(ctx, own.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // no seat is an answer
	case err != nil:
		return nil, fmt.Errorf("looking for the coordinator's own pod %s/%s: %w", own.Namespace, own.Name, err)
	case string(p.UID) != own.UID || p.Spec.NodeName != own.Node: // one of another cluster
		return nil, nil //nolint:nilnil // no seat is an answer
	}
	return &Seat{Pod: own, App: app, Workload: workload}, nil
}

// On says whether the coordinator runs on the machine's node.
func (s *Seat) On(m *fleet.Machine) bool { return s != nil && m.Node != nil && m.Node.Name == s.Node }

// again is how long a lead that nobody took is not given away once more.
const again = 10 * time.Minute

// Mark is what is left in the ledger when the lead is given away.
func (s *Seat) Mark(now time.Time) string { return s.UID + " " + now.UTC().Format(time.RFC3339) }

// Tried says that the mark is this pod's own, and new: it has the lead again because nobody else took it.
func (s *Seat) Tried(mark string, now time.Time) bool {
	uid, at, _ := strings.Cut(mark, " ")
	given, err := time.Parse(time.RFC3339, at)
	return uid == s.UID && err == nil && now.Sub(given) < again
}

// Successor is the pod that can lead while this node is emptied, "" for none: it is ready, on another node that is well
// and not about to be emptied itself.
func (s *Seat) Successor(ctx context.Context, f *fleet.Fleet) (string, error) {
	pods, err := s.Workload.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + s.App})
	if err != nil {
		return "", fmt.Errorf("looking for another coordinator: %w", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; string(p.UID) != s.UID && s.takesOver(p, f) {
			return p.Name, nil
		}
	}
	return "", nil
}

func (s *Seat) takesOver(p *corev1.Pod, f *fleet.Fleet) bool {
	if p.DeletionTimestamp != nil || p.Spec.NodeName == s.Node || !ready(p) {
		return false
	}
	m := f.Find(p.Spec.NodeName)
	return m == nil || m.Node != nil && m.Node.Ready && (m.Slot == nil || !fleet.Disrupts(m.Slot.Disruption))
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// AwaitSuccessor waits until somebody else holds the lease that was given up, at most for as long as a lease lasts:
// a process that begins anew at once might take it again.
func AwaitSuccessor(ctx context.Context, machines kubernetes.Interface, namespace, lease string, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		l, err := machines.CoordinationV1().Leases(namespace).Get(ctx, lease, metav1.GetOptions{})
		if err == nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollLease):
		}
	}
}

const pollLease = 500 * time.Millisecond
