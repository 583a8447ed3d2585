package rollout

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/standby"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// empty reserves slots for serving machines that are to stand by: their nodes are drained
// like any other, and nothing is done to their hosts.
func (r *Reconciler) empty(ctx context.Context, l *v1alpha1.Ledger, f *fleet.Fleet) error {
	if moves := standby.Moves(f); len(moves) > 0 {
		if err := r.countPods(ctx, moves); err != nil {
			return err
		}
	}
	for moves := standby.Moves(f); len(moves) > 0; moves = standby.Moves(f) {
		m := moves[0]
		if err := r.handOver(ctx, l, f, m, v1alpha1.DisruptionDrain); err != nil {
			return err
		}
		id, err := newGrantID()
		if err != nil {
			return err
		}
		slot := v1alpha1.Slot{
			Machine: m.Name, MachineUID: string(m.UID), GrantID: id, DrainsOnly: true, Disruption: v1alpha1.DisruptionDrain,
			State: v1alpha1.SlotReserved, ReservedTime: metav1.NewTime(f.Now),
		}
		if err := r.Ledger.Reserve(ctx, l, slot); err != nil {
			return fmt.Errorf("reserving for Machine %s to stand by: %w", m.Name, err)
		}
		m.Hold(&slot)
		logr.FromContextOrDiscard(ctx).Info("Reserved a slot to stand by", "machine", m.Name, "grant", slot.GrantID)
	}
	return nil
}

// mostCounted bounds how many nodes of a pool are asked for their pods.
const mostCounted = 100

// countPods counts the pods of the pools' nodes, so that the cheapest one to empty is
// chosen. In a pool with very many nodes names decide.
func (r *Reconciler) countPods(ctx context.Context, moves []*fleet.Machine) error {
	done := map[*fleet.Pool]bool{}
	for _, move := range moves {
		p := move.Pool
		if done[p] || len(p.Machines) > mostCounted {
			continue
		}
		done[p] = true
		for _, m := range p.Machines {
			if m.Node == nil || m.Slot != nil || m.StandsBy() {
				continue
			}
			n, err := r.podsOn(ctx, m.Node.Name)
			if err != nil {
				return err
			}
			m.Pods = &n
		}
	}
	return nil
}

// podsOn is how many pods a drain would take off the node, as far as that shows in them.
func (r *Reconciler) podsOn(ctx context.Context, node string) (int, error) {
	pods, err := r.Workload.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return 0, fmt.Errorf("counting the pods of Node %s: %w", node, err)
	}
	n := 0
	for i := range pods.Items {
		if evictable(&pods.Items[i]) {
			n++
		}
	}
	return n, nil
}

func evictable(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil
	return !mirror && !ended && (owner == nil || owner.Kind != "DaemonSet")
}
