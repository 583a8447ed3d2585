// Package mirror serves a directory to tests as the server of a package repository that
// fails when it is told to, and has throw-away keys to sign what is in it.
package mirror

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// Server is the server of a directory.
type Server struct {
	URL string
	Dir string

	server  *httptest.Server
	mu      sync.Mutex
	status  int // answered to everything, when set
	answers []answer
	fetched []string
}

type answer struct {
	part   string
	handle http.HandlerFunc
}

// Serve serves a new directory until the test ends.
func Serve(t testing.TB) *Server {
	t.Helper()
	s := &Server{Dir: t.TempDir()}
	s.server = httptest.NewServer(s)
	s.URL = s.server.URL
	t.Cleanup(s.Close)
	return s
}

// Close takes the server away: nothing listens there any more.
func (s *Server) Close() { s.server.Close() }

// ServeHTTP answers as the server does; a test may put another in front of it.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	status := s.status
	s.fetched = append(s.fetched, req.URL.Path)
	handle := http.FileServer(http.Dir(s.Dir)).ServeHTTP
	for _, a := range s.answers {
		if strings.Contains(req.URL.Path, a.part) {
			handle = a.handle
		}
	}
	s.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	handle(w, req)
}

// Answer is given to everything that is asked from now on; 0 stands for what is there.
func (s *Server) Answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// AnswerFor has whatever has the part in its path answered otherwise.
func (s *Server) AnswerFor(part string, handle http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answer{part, handle})
}

// Fetched are the paths that were asked for, in their order.
func (s *Server) Fetched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.fetched...)
}

// Write puts a file into the directory.
func (s *Server) Write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(s.Dir+"/"+name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
