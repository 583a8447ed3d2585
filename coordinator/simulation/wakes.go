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
	slow map[wakeKey]asked
}

// asked is when a controller wanted to look that has to wait for longer.
type asked struct {
	from  time.Time
	every time.Duration
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
		w.at, w.idle, w.slow = map[wakeKey]time.Time{}, map[wakeKey]int{}, map[wakeKey]asked{}
	}
	delete(w.slow, key)
	if d := at.Sub(now); w.idle[key] > slower && d > 0 && d < slowest {
		w.slow[key] = asked{from: now, every: d}
		at = now.Add(slowest)
	}
	w.put(key, at)
}

func (w *wakes) put(key wakeKey, at time.Time) {
	if known, ok := w.at[key]; ok && known.Equal(at) {
		return
	}
	w.at[key] = at
	heap.Push(&w.heap, wakeItem{at, key})
}

func (w *wakes) drop(key wakeKey) {
	delete(w.at, key)
	delete(w.slow, key)
}

// renew says that the object waits for its time, and does not look in vain.
func (w *wakes) renew(key wakeKey) { delete(w.idle, key) }

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
		w.drop(key)
		w.idle[key]++
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b wakeKey) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return out
}

// fruitful says that something has changed. Who was made to wait looks when it would have.
func (w *wakes) fruitful(now time.Time) {
	clear(w.idle)
	for key, a := range w.slow {
		looks := now.Sub(a.from)/a.every + 1
		if at := a.from.Add(looks * a.every); at.Before(w.at[key]) {
			w.put(key, at)
		}
	}
	clear(w.slow)
}

// hopeless says that everybody who wants to look again has done so in vain, again and again.
func (w *wakes) hopeless() bool {
	for key := range w.at {
		if w.idle[key] < patience {
			return false
		}
	}
	return true
}
