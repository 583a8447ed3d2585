package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	probeInterval = time.Second
	probeTimeout  = 3 * time.Second
	dialTimeout   = 2 * time.Second
	// failuresToDown: one slow answer of a busy API server is not yet a dead one.
	failuresToDown = 3
)

// Forwarder is a TCP load balancer before API servers: it asks each for /readyz, gives new connections to the ready ones in
// turn, and cuts the connections to one that stopped answering, so that clients notice a host that died in silence.
type Forwarder struct {
	probe *http.Client
	turn  atomic.Uint64

	mu       sync.Mutex
	backends []*backend
}

type backend struct {
	address string
	stop    context.CancelFunc

	mu       sync.Mutex
	ready    bool
	failures int
	conns    map[net.Conn]struct{}
}

// NewForwarder makes a forwarder without backends.
func NewForwarder() *Forwarder {
	return &Forwarder{probe: &http.Client{
		Timeout: probeTimeout,
		// The probe asks whether somebody is there, not who: clients verify the certificate end to end.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}}
}

// SetBackends replaces the API servers; those that stay keep their connections.
func (f *Forwarder) SetBackends(ctx context.Context, addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := map[string]*backend{}
	for _, b := range f.backends {
		kept[b.address] = b
	}
	f.backends = nil
	for _, a := range addresses {
		b := kept[a]
		if b == nil {
			bctx, stop := context.WithCancel(ctx)
			b = &backend{address: a, stop: stop, conns: map[net.Conn]struct{}{}}
			go f.watch(bctx, b)
		}
		delete(kept, a)
		f.backends = append(f.backends, b)
	}
	for _, gone := range kept {
		gone.stop()
		gone.cut()
	}
}

// Serve forwards connections until the context ends.
func (f *Forwarder) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		client, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // out of file descriptors, or the client left already: the next may do better
			log.Printf("accepting a connection to the API endpoint: %v", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		go f.forward(client)
	}
}

func (f *Forwarder) forward(client net.Conn) {
	defer client.Close()
	for _, b := range f.candidates() {
		server, err := net.DialTimeout("tcp", b.address, dialTimeout)
		if err != nil {
			continue
		}
		b.join(client, server)
		return
	}
}

// candidates orders the ready backends by turn. With none ready, all are tried: during a bootstrap an API server is of use
// before it is ready.
func (f *Forwarder) candidates() []*backend {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ready []*backend
	for _, b := range f.backends {
		if b.isReady() {
			ready = append(ready, b)
		}
	}
	if len(ready) == 0 {
		return append(ready, f.backends...)
	}
	first := int(f.turn.Add(1) % uint64(len(ready)))
	return append(append([]*backend{}, ready[first:]...), ready[:first]...)
}

func (f *Forwarder) watch(ctx context.Context, b *backend) {
	for {
		b.observe(f.answers(ctx, b.address))
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeInterval):
		}
	}
}

func (f *Forwarder) answers(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := f.probe.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (b *backend) isReady() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

func (b *backend) observe(ok bool) {
	b.mu.Lock()
	if ok {
		b.ready, b.failures = true, 0
		b.mu.Unlock()
		return
	}
	b.failures++
	down := b.failures == failuresToDown
	if b.failures >= failuresToDown {
		b.ready = false
	}
	b.mu.Unlock()
	if down {
		b.cut()
	}
}

// join copies both ways until either side is done.
func (b *backend) join(client, server net.Conn) {
	b.track(server)
	defer b.untrack(server)
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // how a connection ends is for its two ends to judge
			_ = way[0].(*net.TCPConn).CloseWrite()
		})
	}
	wg.Wait()
}

func (b *backend) track(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[c] = struct{}{}
}

func (b *backend) untrack(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
	_ = c.Close()
}

// cut ends the connections to the backend; their clients see an end of file and connect again, to another one.
func (b *backend) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
}
