package daemon

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apiServer is a TLS server that answers /readyz as told and everything else with its name; silent means that it accepts
// connections and says nothing, as a host that died behind a load balancer.
type apiServer struct {
	*httptest.Server
	ready atomic.Bool
	hits  atomic.Int64
}

func startAPIServer(t *testing.T, name string) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.ready.Store(true)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && !s.ready.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/readyz":
		default:
			s.hits.Add(1)
			_, _ = io.WriteString(w, name)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) address() string { return s.Listener.Addr().String() }

func startForwarder(t *testing.T, backends ...string) (f *Forwarder, address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f = NewForwarder()
	f.SetBackends(ctx, backends)
	go func() { _ = f.Serve(ctx, l) }()
	return f, l.Addr().String()
}

func get(address string) (string, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	resp, err := client.Get("https://" + address + "/")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func (f *Forwarder) readyCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, b := range f.backends {
		if b.isReady() {
			n++
		}
	}
	return n
}

func TestConnectionsGoToReadyServersInTurn(t *testing.T) {
	a, b := startAPIServer(t, "a"), startAPIServer(t, "b")
	f, address := startForwarder(t, a.address(), b.address())
	require.Eventually(t, func() bool { return f.readyCount() == 2 }, 5*time.Second, 10*time.Millisecond)
	for range 6 {
		_, err := get(address)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 3, a.hits.Load())
	assert.EqualValues(t, 3, b.hits.Load())
}

func TestAServerThatIsNotReadyIsSkipped(t *testing.T) {
	a, b := startAPIServer(t, "a"), startAPIServer(t, "b")
	f, address := startForwarder(t, a.address(), b.address())
	require.Eventually(t, func() bool { return f.readyCount() == 2 }, 5*time.Second, 10*time.Millisecond)

	a.ready.Store(false)
	require.Eventually(t, func() bool { return f.readyCount() == 1 }, 15*time.Second, 50*time.Millisecond)
	for range 4 {
		got, err := get(address)
		require.NoError(t, err)
		assert.Equal(t, "b", got)
	}

	a.ready.Store(true)
	require.Eventually(t, func() bool { return f.readyCount() == 2 }, 5*time.Second, 50*time.Millisecond)
}

func TestAClientNeverMeetsAServerThatRefuses(t *testing.T) {
	a, b := startAPIServer(t, "a"), startAPIServer(t, "b")
	f, address := startForwarder(t, a.address(), b.address())
	require.Eventually(t, func() bool { return f.readyCount() == 2 }, 5*time.Second, 10*time.Millisecond)
	a.Close() // still counts as ready for an instant
	for range 4 {
		got, err := get(address)
		require.NoError(t, err)
		assert.Equal(t, "b", got)
	}
}

func TestWithNoServerReadyAllAreTried(t *testing.T) {
	a := startAPIServer(t, "a")
	a.ready.Store(false)
	_, address := startForwarder(t, "127.0.0.1:1", a.address())
	got, err := get(address)
	require.NoError(t, err)
	assert.Equal(t, "a", got)
}

func TestConnectionsToAServerThatFellSilentAreCut(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	_, address := startForwarder(t, silent.Addr().String())
	client, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer client.Close()

	require.NoError(t, client.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the client would otherwise wait for the dead host for minutes")
}

func TestAServerThatLeavesTakesItsConnectionsAlong(t *testing.T) {
	a, b := startAPIServer(t, "a"), startAPIServer(t, "b")
	f, address := startForwarder(t, a.address())
	require.Eventually(t, func() bool { return f.readyCount() == 1 }, 5*time.Second, 10*time.Millisecond)
	kept, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer kept.Close()

	f.SetBackends(t.Context(), []string{b.address()})

	require.NoError(t, kept.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err = bufio.NewReader(kept).ReadByte()
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "timeout", "cut, not forgotten")
	got, err := get(address)
	require.NoError(t, err)
	assert.Equal(t, "b", got)
}
