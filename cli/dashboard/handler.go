package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"path"
	"time"

	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/outage"
)

//go:embed assets
var assets embed.FS

// contentTypes of the assets; what a desk's own table of types says of them is not asked.
var contentTypes = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Config of the page.
type Config struct {
	Hub *Hub
	// Token that every path begins with.
	Token string
	// Hosts are what the Host header may be: address and port, as in the browser's address bar.
	Hosts []string
	// Why asks the gates about a machine.
	Why func(ctx context.Context, machine string) (verbs.Explanation, error)
	// Gather is how long changes are collected before they are sent; 250 ms unless given.
	Gather time.Duration
	// Viewers is how many pages may be open at once; 16 unless given.
	Viewers int
}

type server struct{ Config }

// Handler serves the page.
func Handler(c Config) http.Handler {
	if c.Gather == 0 {
		c.Gather = 250 * time.Millisecond
	}
	if c.Viewers == 0 {
		c.Viewers = 16
	}
	s := &server{c}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.asset)
	mux.HandleFunc("/{file}", s.asset)
	mux.HandleFunc("/events", s.events)
	mux.HandleFunc("/machines/{name}", s.machine)
	return guard(c.Token, c.Hosts, mux)
}

func (s *server) asset(w http.ResponseWriter, r *http.Request) {
	file := r.PathValue("file")
	if file == "" {
		file = "index.html"
	}
	text, err := assets.ReadFile("assets/" + file)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(file)])
	_, _ = w.Write(text) // a browser that has left
}

func (s *server) machine(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	m := s.Hub.machine(name)
	if m == nil {
		http.Error(w, "there is no machine "+name+" any more", http.StatusNotFound)
		return
	}
	detail := detailOf(m)
	e, err := s.Why(r.Context(), name)
	if err != nil {
		detail.WhyFailed = outage.Text(err)
	} else {
		detail.Why = &e
	}
	text, err := json.Marshal(detail)
	if err != nil {
		http.Error(w, "encoding the machine: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a browser that has left
}
