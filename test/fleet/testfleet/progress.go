package testfleet

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/refit-dev/refit/test/fleet/artefacts"
)

// progress writes lines with the seconds since the start; hosts report side by side.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out, begin: time.Now()}
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "[%6.1fs] %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (p *progress) host(name, what string) { p.say("%s: %s", name, what) }

// artefact shows only what takes time; what is in the cache is no news.
func (p *progress) artefact(e artefacts.Event) {
	switch {
	case e.Phase == artefacts.PhaseCached:
	case e.Done:
		p.say("%s: %s in %.0fs %s", e.Item, e.Phase, e.Elapsed.Seconds(), e.Note)
	default:
		p.say("%s: %s %s", e.Item, e.Phase, e.Note)
	}
}
