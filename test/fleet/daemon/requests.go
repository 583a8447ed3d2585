package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/refit-dev/refit/test/fleet/state"
)

// Request is one request of a host to the mirror or the registry.
type Request struct {
	Time    time.Time `json:"time"`
	Address string    `json:"address"`
	Service string    `json:"service"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
}

func requestsPath(name string) string { return filepath.Join(state.Dir(name), "requests.jsonl") }

// requestLog keeps what hosts asked for, for tests that must know when something was fetched.
type requestLog struct {
	mu   sync.Mutex
	file *os.File
}

func openRequestLog(name string) (*requestLog, error) {
	f, err := os.OpenFile(requestsPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of requests: %w", err)
	}
	return &requestLog{file: f}, nil
}

func (l *requestLog) record(service string, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	line, err := json.Marshal(Request{Time: time.Now(), Address: host, Service: service, Method: r.Method, Path: r.URL.Path})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(append(line, '\n')) // a lost line is noticed by the test that reads it
}

// service is the one place that every request of a host to mirror and registry passes: what shall go wrong there on
// purpose goes in here, by the service's name.
func (l *requestLog) service(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.record(name, r)
		next.ServeHTTP(w, r)
	})
}

// Requests are all requests of a fleet's hosts to its mirror and registry so far.
func Requests(name string) ([]Request, error) {
	f, err := os.Open(requestsPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log of requests: %w", err)
	}
	defer f.Close()
	var all []Request
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var r Request
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading the log of requests: %w", err)
		}
		all = append(all, r)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("reading the log of requests: %w", err)
	}
	return all, nil
}
