package simulation

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// wakeKey is a controller's object.
type wakeKey struct{ kind, name string }

// wakes are when controllers want to look again, one time for each object.
type wakes struct {
	at   map[wakeKey]time.Time
	heap wakeHeap
	idle map[wakeKey]int // how often it has looked since anything has changed
}

type wakeItem struct {
	at  time.Time
	key wakeKey
}

type wakeHeap []wakeItem

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h wakeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *wakeHeap) Push(x any) {
	if it, ok := x.(wakeItem); ok {
		*h = append(*h, it)
	}
}

// Pop implements heap.Interface.
func (h *wakeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

const (
	// patience is how often a controller looks in vain before nothing more is expected of it.
	patience = 30
	// slower looks follow after some that were in vain, up to slowest apart.
	slower  = 20
	slowest = time.Minute
)

func (w *wakes) set(key wakeKey, at, now time.Time) {
	if w.at == nil {
		w.at, w.idle = map[wakeKey]time.Time{}, map[wakeKey]int{}
	}
	if n := w.idle[key]; n > slower && at.Sub(now) < slowest {
		at = now.Add(slowest)
	}
	if known, ok := w.at[key]; ok && known.Equal(at) {
		return
	}
	w.at[key] = at
	heap.Push(&w.heap, wakeItem{at, key})
}

func (w *wakes) drop(key wakeKey) { delete(w.at, key) }

// clean takes off the heap what was moved or dropped.
func (w *wakes) clean() {
	for len(w.heap) > 0 {
		top := w.heap[0]
		if at, ok := w.at[top.key]; ok && at.Equal(top.at) {
			return
		}
		heap.Pop(&w.heap)
	}
}

func (w *wakes) peek() (time.Time, bool) {
	w.clean()
	if len(w.heap) == 0 {
		return time.Time{}, false
	}
	return w.heap[0].at, true
}

// due are the objects to look at, and no longer wait for their time.
func (w *wakes) due(now time.Time) []wakeKey {
	var out []wakeKey
	for at, ok := w.peek(); ok && !at.After(now); at, ok = w.peek() {
		key := w.heap[0].key
		heap.Pop(&w.heap)
		delete(w.at, key)
		w.idle[key]++
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b wakeKey) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return out
}

// fruitful says that something has changed.
func (w *wakes) fruitful() { clear(w.idle) }

// hopeless says that everybody who wants to look again has done so in vain, again and again.
func (w *wakes) hopeless() bool {
	for key := range w.at {
		if w.idle[key] < patience {
			return false
		}
	}
	return true
}
