package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// servingInterval is how often the nodes are looked at.
const servingInterval = 250 * time.Millisecond

// servingSampler counts the workers that serve, as anybody can see it: Node Ready and not cordoned, and the Machine's role
// Serving. While the API server is away nothing is counted.
type servingSampler struct {
	env    *Env
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	looks  []servingLook
	missed int
}

// servingLook is one look at the workers.
type servingLook struct {
	time time.Time
	// open nodes are Ready and not cordoned; serving machines have the role as well.
	open, serving []string
	// leads is the node of the leading coordinator, "" for none
	leads string
	// emptied is a node that was emptied under a grant while its coordinator led
	emptied string
	// why the others do not serve
	others []string
}

func (l servingLook) String() string {
	return fmt.Sprintf("%s: serving %s; %s", l.time.Format(time.TimeOnly), strings.Join(l.serving, ", "), strings.Join(l.others, "; "))
}

func (e *Env) startServingSampler(ctx context.Context) *servingSampler {
	ctx, cancel := context.WithCancel(ctx)
	s := &servingSampler{env: e, cancel: cancel, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

func (s *servingSampler) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(servingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l, err := s.look(ctx)
		s.mu.Lock()
		if err == nil {
			s.looks = append(s.looks, l)
		} else {
			s.missed++
		}
		s.mu.Unlock()
	}
}

func (s *servingSampler) look(ctx context.Context) (servingLook, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	l := servingLook{time: time.Now()}
	nodes, err := s.env.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return l, fmt.Errorf("looking at the nodes: %w", err)
	}
	machines, err := s.env.Machines(ctx)
	if err != nil {
		return l, err
	}
	_, l.leads, _ = s.env.leader(ctx)
	for i := range nodes.Items {
		n := &nodes.Items[i]
		at := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.Name == n.Name })
		if at < 0 || slices.Contains(machines[at].Spec.Roles, v1alpha1.RoleControlPlane) {
			continue
		}
		if by := n.Annotations[v1alpha1.AnnotationCordonedBy]; n.Name == l.leads && n.Spec.Unschedulable && by != "" && by != v1alpha1.CordonStandby {
			l.emptied = n.Name
		}
		open := nodeReady(n) && !n.Spec.Unschedulable
		if open {
			l.open = append(l.open, n.Name)
		}
		if open && machines[at].Status.Role == v1alpha1.MachineRoleServing {
			l.serving = append(l.serving, n.Name)
			continue
		}
		l.others = append(l.others, fmt.Sprintf("%s ready=%t cordoned=%t by %q role=%s phase=%s",
			n.Name, nodeReady(n), n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordonedBy], machines[at].Status.Role, machines[at].Status.Phase))
	}
	return l, nil
}

// Stop ends the sampling. It returns the look at which fewest served, and how many looks there were.
func (s *servingSampler) Stop() (low servingLook, looks, missed int) {
	s.cancel()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.looks) == 0 {
		return low, 0, s.missed
	}
	low = slices.MinFunc(s.looks, func(a, b servingLook) int { return len(a.serving) - len(b.serving) })
	return low, len(s.looks), s.missed
}

// most is how long one look was after another: what nobody has seen in between.
func (s *servingSampler) most() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest time.Duration
	for i := 1; i < len(s.looks); i++ {
		longest = max(longest, s.looks[i].time.Sub(s.looks[i-1].time))
	}
	return longest
}

// leaders are the nodes that the leader was on one after another, and those that were emptied while it was there.
func (s *servingSampler) leaders() (seats, emptied []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.looks {
		if l.leads != "" && (len(seats) == 0 || seats[len(seats)-1] != l.leads) {
			seats = append(seats, l.leads)
		}
		if l.emptied != "" && !slices.Contains(emptied, l.emptied) {
			emptied = append(emptied, l.emptied)
		}
	}
	return seats, emptied
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
