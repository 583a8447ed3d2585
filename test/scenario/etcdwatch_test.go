package scenario

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// etcdWatch asks every etcd member, at its own address and with its host's own health-check certificate, whether it serves.
// It knows nothing of Refit and needs no API server.
type etcdWatch struct {
	hosts   []string
	members map[string]*http.Client // by address
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	result  etcdSeen
	lastOne time.Time // when a member last answered a linearizable read
}

// etcdSeen is what the observer saw of the members.
type etcdSeen struct {
	Samples int
	// Fewest members that served at the same time.
	Fewest int
	// LongestWithoutQuorum is the longest time in which no member answered a linearizable read: elections included.
	LongestWithoutQuorum time.Duration
	// Below are the samples with fewer members than a quorum.
	Below []string
}

const etcdSampleInterval = 500 * time.Millisecond

// startEtcdWatch looks at the members of a stacked etcd until stop.
func startEtcdWatch(ctx context.Context, f *testfleet.Fleet) (*etcdWatch, error) {
	w := &etcdWatch{members: map[string]*http.Client{}, done: make(chan struct{}), lastOne: time.Now()}
	for _, h := range f.Hosts() {
		if !h.ControlPlane() {
			continue
		}
		cert, err := h.Exec(ctx, nil, "cat", "/etc/kubernetes/pki/etcd/healthcheck-client.crt")
		if err != nil {
			return nil, err
		}
		key, err := h.Exec(ctx, nil, "cat", "/etc/kubernetes/pki/etcd/healthcheck-client.key")
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the health-check certificate of %s: %w", h.Name(), err)
		}
		w.hosts = append(w.hosts, h.Address())
		w.members[h.Address()] = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}, //nolint:gosec // a probe of a test host
		}}
	}
	w.result.Fewest = len(w.hosts)
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

func (w *etcdWatch) run(ctx context.Context) {
	defer close(w.done)
	for ctx.Err() == nil {
		w.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(etcdSampleInterval):
		}
	}
}

func (w *etcdWatch) look(ctx context.Context) {
	var wg sync.WaitGroup
	serving, quorum := make([]bool, len(w.hosts)), make([]bool, len(w.hosts))
	for i, address := range w.hosts {
		wg.Add(2)
		go func() { defer wg.Done(); serving[i] = w.healthy(ctx, address, "?serializable=true") }()
		go func() { defer wg.Done(); quorum[i] = w.healthy(ctx, address, "") }()
	}
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	n, now := count(serving), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Samples++
	w.result.Fewest = min(w.result.Fewest, n)
	if n < len(w.hosts)/2+1 {
		w.result.Below = append(w.result.Below, fmt.Sprintf("%s: %d of %d members served: %v", now.Format(time.TimeOnly), n, len(w.hosts), serving))
	}
	if count(quorum) > 0 {
		w.lastOne = now
	}
	w.result.LongestWithoutQuorum = max(w.result.LongestWithoutQuorum, now.Sub(w.lastOne))
}

func count(yes []bool) int {
	n := 0
	for _, y := range yes {
		if y {
			n++
		}
	}
	return n
}

func (w *etcdWatch) healthy(ctx context.Context, address, query string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+":2379/health"+query, nil)
	if err != nil {
		return false
	}
	resp, err := w.members[address].Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (w *etcdWatch) stop() etcdSeen {
	w.cancel()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result
}
