package scenario

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// older is two minors before To, and passes through that of From.
var older = Wish{Kubernetes: "v1.35.4", Containerd: From.Containerd}

// TestTwoMinorsAreOneWish edits a fleet once and waits. REFIT_MINORS says with how many
// control planes, such as 1, 3 or 5.
func TestTwoMinorsAreOneWish(t *testing.T) {
	controlPlanes, err := strconv.Atoi(os.Getenv("REFIT_MINORS"))
	if err != nil {
		t.Skip("set REFIT_MINORS=1 or 3 (as root) to take a real fleet with so many control planes over two minors: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30+20*controlPlanes)*time.Minute)
	defer cancel()
	o := Options("minors", 2, os.Stderr)
	o.ControlPlanes, o.Kubernetes, o.AlsoKubernetes = controlPlanes, older.Kubernetes, []string{From.Kubernetes, To.Kubernetes}
	f, err := testfleet.Up(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if os.Getenv("REFIT_KEEP_FLEET") == "" {
			require.NoError(t, f.Down(context.Background()))
		}
	})
	env, err := Open(f, os.Stderr)
	require.NoError(t, err)
	require.NoError(t, env.Install(ctx))
	require.NoError(t, env.AdoptAt(ctx, older))

	members, err := startEtcdWatch(ctx, f)
	require.NoError(t, err)
	writes, watch := startWriter(ctx, env.Kube), startSkewWatch(ctx, env)
	require.NoError(t, env.Edit(ctx, Wish{Kubernetes: To.Kubernetes, Containerd: older.Containerd}))
	begin, passed := time.Now(), map[v1alpha1.KubernetesVersion]bool{}
	err = env.Follow(ctx, AllAt(Wish{Kubernetes: To.Kubernetes, Containerd: older.Containerd}), func(c Change) {
		if a := c.Machine.Status.Assignment; a != nil && a.Target.ControlPlane != "" {
			passed[a.Target.ControlPlane] = true
		}
		env.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), c.Machine.Name, Line(&c.Machine))
	})
	require.NoError(t, err)
	took := time.Since(begin)
	env.Say("two minors in %s", took.Round(time.Second))

	lost, longest, count := writes.stop()
	env.Say("writes through the API: %d, lost %d, longest gap %s", count, lost, longest.Round(time.Millisecond))
	assert.Zero(t, lost, "what the API server has taken is still there")
	assert.Greater(t, count, 10)
	etcd := members.stop()
	env.Say("etcd: %d samples, fewest members serving %d of %d, longest time without a linearizable read %s",
		etcd.Samples, etcd.Fewest, controlPlanes, etcd.LongestWithoutQuorum.Round(time.Millisecond))
	assert.Greater(t, etcd.Samples, 10)
	if controlPlanes > 1 {
		assert.Empty(t, etcd.Below, "healthy members are never fewer than a quorum")
	}
	violations, samples := watch.stop()
	env.Say("skew: %d samples", samples)
	assert.Empty(t, violations, "no kubelet was newer than an API server")
	assert.Greater(t, samples, 10)
	assert.Equal(t, map[v1alpha1.KubernetesVersion]bool{v1alpha1.KubernetesVersion(From.Kubernetes): true, v1alpha1.KubernetesVersion(To.Kubernetes): true}, passed)

	machines, err := env.Machines(ctx)
	require.NoError(t, err)
	PrintTimings(os.Stderr, machines)
	for i := range machines {
		if env.Fleet.Host(machines[i].Name).ControlPlane() {
			continue
		}
		drains := 0
		for _, h := range machines[i].Status.History {
			if duration(h.Phases, "Drain") != "-" {
				drains++
			}
		}
		assert.Equal(t, 1, drains, "%s is drained once for two minors", machines[i].Name)
	}
}

// writer writes all the while, as an application would, and remembers what was taken.
type writer struct {
	kube   kubernetes.Interface
	cancel context.CancelFunc
	done   chan struct{}

	taken   int // the last number that the API server has acknowledged
	longest time.Duration
}

const writerName = "writer"

func startWriter(ctx context.Context, kube kubernetes.Interface) *writer {
	ctx, cancel := context.WithCancel(ctx)
	w := &writer{kube: kube, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		last := time.Now()
		for ctx.Err() == nil {
			if w.write(ctx, w.taken+1) == nil {
				w.taken++
				w.longest = max(w.longest, time.Since(last))
				last = time.Now()
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return w
}

// write makes one object of its own for each number: a lost one would be missing.
func (w *writer) write(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", writerName, n), Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": writerName},
	}}
	_, err := w.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Read back what was taken, by this request or by one whose answer was lost.
	_, err = w.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, object.Name, metav1.GetOptions{})
	return err
}

func (w *writer) stop() (lost int, longest time.Duration, count int) {
	w.cancel()
	<-w.done
	list, err := w.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + writerName})
	if err != nil {
		return w.taken, w.longest, w.taken
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	for n := 1; n <= w.taken; n++ {
		if !there[fmt.Sprintf("%s-%d", writerName, n)] {
			lost++
		}
	}
	return lost, w.longest, w.taken
}

// skewWatch looks at the API server of each control-plane host by its own address, and at what every kubelet told its Node.
type skewWatch struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	violations []string
	samples    int
}

func startSkewWatch(ctx context.Context, e *Env) *skewWatch {
	ctx, cancel := context.WithCancel(ctx)
	s := &skewWatch{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			s.look(ctx, e)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return s
}

func (s *skewWatch) look(ctx context.Context, e *Env) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nodes, err := e.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	// After the kubelets: an API server never goes back, a kubelet never runs ahead of what answers later.
	for _, h := range e.Fleet.Hosts() {
		if !h.ControlPlane() {
			continue
		}
		text, err := apiVersion(ctx, h.Address())
		if err != nil || text == "" {
			continue // down for its own upgrade, or not up to answering yet: nobody talks to it
		}
		api, _ := upgrade.ParseKubernetes(text)
		for i := range nodes.Items {
			kubelet, ok := upgrade.ParseKubernetes(nodes.Items[i].Status.NodeInfo.KubeletVersion)
			s.mu.Lock()
			s.samples++
			if !ok || !api.Known() || kubelet.MinorsAhead(api) > 0 || api.MinorsAhead(kubelet) > 3 {
				s.violations = append(s.violations, fmt.Sprintf("kubelet of %s %s, API server of %s %s",
					nodes.Items[i].Name, nodes.Items[i].Status.NodeInfo.KubeletVersion, h.Name(), text))
			}
			s.mu.Unlock()
		}
	}
}

func (s *skewWatch) stop() (violations []string, samples int) {
	s.cancel()
	<-s.done
	return s.violations, s.samples
}
