package scenario

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Sampler counts the application's ready pods every 200 ms. It knows nothing of
// Refit. While the API server is away it asks the pods themselves.
type Sampler struct {
	kube kubernetes.Interface
	http *http.Client

	mu      sync.Mutex
	samples []Sample
	pods    []corev1.Pod
	cancel  context.CancelFunc
	done    chan struct{}
}

// Sample is one look at the application.
type Sample struct {
	Time  time.Time
	Ready int
	// Direct says that the API server did not answer, and the pods were asked instead.
	Direct bool
}

// SampleInterval is how often the application is looked at.
const SampleInterval = 200 * time.Millisecond

// StartSampler looks at the application until Stop.
func (e *Env) StartSampler(ctx context.Context) *Sampler {
	ctx, cancel := context.WithCancel(ctx)
	s := &Sampler{kube: e.Kube, http: &http.Client{Timeout: SampleInterval}, cancel: cancel, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

// Stop ends the sampling and returns what was seen.
func (s *Sampler) Stop() []Sample {
	s.cancel()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples
}

func (s *Sampler) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(SampleInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			sample := s.look(ctx)
			if ctx.Err() != nil {
				return
			}
			s.mu.Lock()
			s.samples = append(s.samples, sample)
			s.mu.Unlock()
		}
	}
}

func (s *Sampler) look(ctx context.Context) Sample {
	now := time.Now()
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	list, err := s.kube.CoreV1().Pods(AppNamespace).List(short, metav1.ListOptions{LabelSelector: "app=" + AppName})
	if err != nil {
		return Sample{Time: now, Ready: s.askPods(ctx), Direct: true}
	}
	s.pods = list.Items
	ready := 0
	for i := range list.Items {
		if podReady(&list.Items[i]) {
			ready++
		}
	}
	return Sample{Time: now, Ready: ready}
}

func (s *Sampler) askPods(ctx context.Context) int {
	answers := 0
	for i := range s.pods {
		if s.pods[i].Status.PodIP == "" {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:8080/healthz", s.pods[i].Status.PodIP), nil)
		if err != nil {
			continue
		}
		resp, err := s.http.Do(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			answers++
		}
	}
	return answers
}

func podReady(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Lowest returns the sample with the fewest ready pods.
func Lowest(samples []Sample) Sample {
	low := Sample{Ready: AppReplicas + 1}
	for _, s := range samples {
		if s.Ready < low.Ready {
			low = s
		}
	}
	return low
}
