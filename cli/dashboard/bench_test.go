package dashboard

import (
	"encoding/json"
	"testing"

	"github.com/refit-dev/refit/test/showcase"
)

// BenchmarkSnapshotOf5000Machines makes what a browser is sent when it comes, and prints how large that is.
func BenchmarkSnapshotOf5000Machines(b *testing.B) {
	h := full()
	size := 0
	for b.Loop() {
		v := h.join(2)
		size = 0
		for d := h.take(v, batch); !d.empty(); d = h.take(v, batch) {
			text, _ := json.Marshal(d)
			size += len(text)
		}
		h.leave(v)
	}
	b.ReportMetric(float64(size), "bytes/snapshot")
}

// BenchmarkReadingOf5000Machines is what the first lists cost.
func BenchmarkReadingOf5000Machines(b *testing.B) {
	f := showcase.New(5000, noon)
	for b.Loop() {
		h := NewHub("refit", zone)
		for _, o := range f.Objects() {
			h.Put(o)
		}
	}
}

// BenchmarkChangeOfOneOf5000Machines is one event of a watch, with a browser that looks.
func BenchmarkChangeOfOneOf5000Machines(b *testing.B) {
	h := full()
	v := h.join(2)
	m := machine("worker-1")
	for i := 0; b.Loop(); i++ {
		m.Status.Versions.Kubelet = []string{"v1.37.1", "v1.37.2"}[i%2]
		h.Put(m)
		h.take(v, 2*batch*10)
	}
}

func full() *Hub {
	h := NewHub("refit", zone)
	for _, o := range showcase.New(5000, noon).Objects() {
		h.Put(o)
	}
	return h
}
