package fault

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// mirror is the fleet's mirror behind something that fails.
type mirror struct {
	server *httptest.Server
	host   string // the machine's address in the fleet's network

	mu   sync.Mutex
	mode string
}

func (m *machine) mirror(t *testing.T) *mirror {
	t.Helper()
	at, err := url.Parse(fleet.MirrorURL())
	require.NoError(t, err)
	p := &mirror{host: at.Hostname()}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	require.NoError(t, p.server.Listener.Close())
	p.server.Listener, err = net.Listen("tcp", net.JoinHostPort(p.host, "0"))
	require.NoError(t, err)
	p.server.Start()
	t.Cleanup(p.server.Close)
	return p
}

func (p *mirror) fail(mode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
}

func (p *mirror) uri() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == "away" {
		return "http://" + net.JoinHostPort(p.host, "1") // nobody listens there
	}
	return p.server.URL
}

// redirected is a file of the fleet's mirror, as this one has it.
func (p *mirror) redirected(uri string) string {
	return strings.Replace(uri, "http://mirror.fleet.test", p.uri(), 1)
}

func (p *mirror) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	mode := p.mode
	p.mu.Unlock()
	if status, err := strconv.Atoi(mode); err == nil {
		w.WriteHeader(status)
		return
	}
	answer, err := http.Get(fleet.MirrorURL() + r.URL.Path)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(spoiled(mode, path.Base(r.URL.Path), body))
}

// spoiled changes what the mode is about, and never its length.
func spoiled(mode, name string, body []byte) []byte {
	of := map[string]func(string) bool{
		"wrong signature": func(n string) bool { return n == "InRelease" || n == "Release" },
		"wrong index":     func(n string) bool { return strings.HasPrefix(n, "Packages") },
		"wrong package":   func(n string) bool { return strings.HasSuffix(n, ".deb") },
	}[mode]
	if of == nil || !of(name) || len(body) < 200 {
		return body
	}
	body = bytes.Clone(body)
	body[len(body)/3] ^= 1
	return body
}
