package machine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// beatPoll is how often the heartbeat of a host without a Node is looked for: nothing tells of one that stays away.
const beatPoll = time.Minute

// listen looks whether a host without a Node still says that it is there. One that has said so
// before and has not for five minutes counts as failed, until it says so again. A host whose agent
// has never said it is not judged: that agent is still to come.
func (r *Reconciler) listen(ctx context.Context, s *scope) (outcome, error) {
	if s.view.NeedsNode() || !s.machine.DeletionTimestamp.IsZero() {
		return goOn, nil
	}
	renewal, err := r.heartbeat(ctx, s)
	if err != nil {
		return stop, wrapMachine(s, "reading the Lease", err)
	}
	s.after(beatPoll)
	if renewal == nil {
		return goOn, nil
	}
	since, again := r.beats.since(s.key, renewal.Time, r.Now())
	f := s.status().RolloutFailure
	switch lost := r.Now().Sub(since) >= fleet.Silence; {
	case !lost && again && f != nil && f.Class == fleet.ClassUnreachable:
		s.status().RolloutFailure = nil
	case lost:
		s.silent = since
		if f == nil {
			s.status().RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassUnreachable, Failure: v1alpha1.Failure{Reason: fleet.ClassUnreachable, Message: silence(since)}}
		}
	}
	return goOn, nil
}

func silence(since time.Time) string {
	return fmt.Sprintf("the agent of this host has said nothing since %s: see to the host and its agent; it goes on by itself when it is back", since.UTC().Format(time.RFC3339))
}

// heartbeat is when the agent has renewed its Lease, by the host's clock; nil where it never has.
// The Lease is made here, so that the agent needs no right to make one.
func (r *Reconciler) heartbeat(ctx context.Context, s *scope) (*metav1.MicroTime, error) {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: s.key.Namespace, Name: AccessName(s.key.Name)}
	err := r.Live.Get(ctx, key, lease)
	if err == nil {
		return lease.Spec.RenewTime, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("getting it: %w", err)
	}
	lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := ctrl.SetControllerReference(s.machine, lease, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("naming its owner: %w", err)
	}
	if err := r.Client.Create(ctx, lease); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("making it: %w", err)
	}
	return nil, nil
}

// beats remembers which renewal of each host was seen and when: no two clocks are compared.
type beats struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]beat
}

type beat struct {
	renewal, seen time.Time
	// again says that it came after another one: a coordinator that has just begun knows of none.
	again bool
}

// since is when the renewal that stands was first seen, and whether it came after another one.
func (b *beats) since(host types.NamespacedName, renewal, now time.Time) (seen time.Time, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[types.NamespacedName]beat{}
	}
	last, known := b.seen[host]
	if !known || !last.renewal.Equal(renewal) {
		last = beat{renewal: renewal, seen: now, again: known}
		b.seen[host] = last
	}
	return last.seen, last.again
}

// end forgets a host whose Machine is gone.
func (b *beats) end(host types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, host)
}
