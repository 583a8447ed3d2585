package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// batch is how many rows one event holds at most, so that the first are painted while the last are on their way.
const batch = 500

// heartbeat is how often a stream that is silent says that it is there.
const heartbeat = 20 * time.Second

// events is the stream of one page: begin, then deltas, of which the first are every machine, ready, and deltas from then on.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	v := s.Hub.join(s.Viewers)
	if v == nil {
		http.Error(w, "too many pages of this dashboard are open: close one", http.StatusServiceUnavailable)
		return
	}
	defer s.Hub.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{w: w, flush: http.NewResponseController(w)}
	out.send("begin", struct{}{})
	s.drain(v, out)
	out.send("ready", struct{}{})
	for out.err == nil && s.wait(r.Context(), v, out) {
		s.drain(v, out)
	}
}

// drain sends what the viewer has not seen.
func (s *server) drain(v *viewer, out *stream) {
	for out.err == nil {
		d := s.Hub.take(v, batch)
		if d.empty() {
			return
		}
		out.send("delta", d)
	}
}

// wait returns when something has changed and a moment has passed in which more of it came together; false at the end.
func (s *server) wait(ctx context.Context, v *viewer, out *stream) bool {
	silent := time.NewTicker(heartbeat)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-silent.C:
			if out.beat(); out.err != nil {
				return false
			}
		case <-v.wake:
			select {
			case <-ctx.Done():
				return false
			case <-time.After(s.Gather):
				return true
			}
		}
	}
}

// stream writes server-sent events. After an error, which is a browser that has left, it writes none.
type stream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	err   error
}

func (s *stream) send(event string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		s.err = fmt.Errorf("encoding event %s: %w", event, err)
		return
	}
	s.write("event: %s\ndata: %s\n\n", event, text)
}

func (s *stream) beat() { s.write(":\n\n") }

func (s *stream) write(format string, args ...any) {
	if s.err != nil {
		return
	}
	if _, s.err = fmt.Fprintf(s.w, format, args...); s.err == nil {
		s.err = s.flush.Flush()
	}
}
