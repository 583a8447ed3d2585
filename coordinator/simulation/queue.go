package simulation

import (
	"container/heap"
	"time"
)

// queue is what is to happen, by time, and at one time in the order in which it was put there.
type queue struct {
	items []*item
	next  int
}

type item struct {
	at  time.Time
	seq int
	run func()
}

func (q *queue) Len() int { return len(q.items) }

func (q *queue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.seq < b.seq
}

func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if it, ok := x.(*item); ok {
		q.items = append(q.items, it)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return last
}

func (q *queue) add(at time.Time, run func()) {
	q.next++
	heap.Push(q, &item{at: at, seq: q.next, run: run})
}

// peek is when the next thing happens.
func (q *queue) peek() (time.Time, bool) {
	if len(q.items) == 0 {
		return time.Time{}, false
	}
	return q.items[0].at, true
}

// take removes the next thing if it happens at that time.
func (q *queue) take(at time.Time) func() {
	if next, ok := q.peek(); !ok || next.After(at) {
		return nil
	}
	it, ok := heap.Pop(q).(*item)
	if !ok {
		return nil
	}
	return it.run
}
