package hostfake

import (
	"fmt"
	"sync"
)

// Crash is what a crash panics with: the process is gone, no cleanup ran.
type Crash struct{ Point string }

// Faults counts points and strikes at the chosen one. There is a point before and one
// after each effect, and one in the middle of those that have a middle.
type Faults struct {
	mu     sync.Mutex
	points int
	calls  int
	// CrashAt is the point at which to crash, counted from 1; 0 never.
	CrashAt int
	// FailAt is the call that fails without effect, counted from 1; 0 none.
	FailAt int
	// FailIf fails calls by their label.
	FailIf func(label string) error
	// Log are the labels of all calls.
	Log []string
}

// Before is the point before an effect; an error says that the effect must not happen.
func (f *Faults) Before(label string) error {
	call := f.begin(label)
	if call == f.FailAt {
		return fmt.Errorf("injected failure of call %d: %s", call, label)
	}
	if f.FailIf != nil {
		return f.FailIf(label)
	}
	return nil
}

func (f *Faults) begin(label string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.Log = append(f.Log, label)
	f.point("before " + label)
	return f.calls
}

// After is the point after an effect, or amid one.
func (f *Faults) After(label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.point("after " + label)
}

func (f *Faults) point(label string) {
	if f.points++; f.points == f.CrashAt {
		panic(Crash{label})
	}
}

// Points counted so far.
func (f *Faults) Points() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.points
}

// Calls counted so far.
func (f *Faults) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Crashes runs a function and says at which point it crashed, if it did.
func Crashes(run func()) (point string, crashed bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case Crash:
			point, crashed = r.Point, true
		default:
			panic(r)
		}
	}()
	run()
	return "", false
}
