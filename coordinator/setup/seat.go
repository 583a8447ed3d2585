package setup

import (
	"context"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/handover"
)

// errHandedOver ends a leader whose own node is next, in favour of another one.
var errHandedOver = errors.New("the lead is handed over: this node is next")

// takeSeat finds out, from what the Deployment tells its pods, whether this coordinator runs on one of the nodes.
func takeSeat(ctx context.Context, workload kubernetes.Interface, end context.CancelCauseFunc) (*handover.Seat, error) {
	own := handover.Pod{
		Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME"), UID: os.Getenv("POD_UID"), Node: os.Getenv("NODE_NAME"),
	}
	seat, err := handover.Take(ctx, workload, own, appName)
	if seat != nil {
		seat.Leave = func() { end(errHandedOver) }
	}
	return seat, err //nolint:wrapcheck // says what was looked for
}

// ownPods are the coordinators' pods on the nodes. In a cluster of nodes other than that of the Machines, a pod that looks
// like one of ours is somebody else's, unless this very process is one there.
func ownPods(mgr manager.Manager, nodes cluster.Cluster, seat *handover.Seat) func(*corev1.Pod) bool {
	if nodes != cluster.Cluster(mgr) && seat == nil {
		return func(*corev1.Pod) bool { return false }
	}
	return drains.OwnPods(os.Getenv("POD_NAMESPACE"), appName)
}
