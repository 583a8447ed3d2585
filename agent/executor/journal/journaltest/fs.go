// Package journaltest is a filesystem in memory for tests of journals: it forgets at a
// power loss what was not synced, and has a point before and after each effect.
package journaltest

import (
	"io/fs"
	"path"
	"sync"
)

// Points is told of every effect; it may fail one, or end the process.
type Points interface {
	Before(label string) error
	After(label string)
}

// FS implements journal.FS.
type FS struct {
	mu     sync.Mutex
	points Points
	// names as the running system sees them, and those that would survive a power loss.
	live, durable map[string][]byte
}

// New is an empty filesystem; points may be nil.
func New(points Points) *FS {
	return &FS{points: points, live: map[string][]byte{}, durable: map[string][]byte{}}
}

// SetPoints changes who is told.
func (f *FS) SetPoints(points Points) { f.points = points }

// PowerLoss drops every name that was not synced with its directory.
func (f *FS) PowerLoss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = map[string][]byte{}
	for name, data := range f.durable {
		f.live[name] = data
	}
}

// Corrupt changes the content of a file behind everybody's back.
func (f *FS) Corrupt(name string, change func([]byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[name] = change(append([]byte(nil), f.live[name]...))
	f.durable[name] = f.live[name]
}

// Names of all files.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.live))
	for name := range f.live {
		names = append(names, name)
	}
	return names
}

func (f *FS) call(label string, effect func()) error {
	if f.points != nil {
		if err := f.points.Before(label); err != nil {
			return err
		}
	}
	f.mu.Lock()
	effect()
	f.mu.Unlock()
	if f.points != nil {
		f.points.After(label)
	}
	return nil
}

// ReadFile implements journal.FS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.live[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return data, nil
}

// ReadDir implements journal.FS.
func (f *FS) ReadDir(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for file := range f.live {
		if path.Dir(file) == name {
			names = append(names, path.Base(file))
		}
	}
	if names == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return names, nil
}

// MkdirAll implements journal.FS.
func (f *FS) MkdirAll(string, fs.FileMode) error { return nil }

// WriteSync implements journal.FS: the content is durable, the name is not yet.
func (f *FS) WriteSync(name string, data []byte, _ fs.FileMode) error {
	return f.call("journal write", func() { f.live[name] = append([]byte(nil), data...) })
}

// Rename implements journal.FS.
func (f *FS) Rename(from, to string) error {
	return f.call("journal rename", func() {
		f.live[to] = f.live[from]
		delete(f.live, from)
	})
}

// Remove implements journal.FS.
func (f *FS) Remove(name string) error {
	var missing error
	err := f.call("journal remove", func() {
		if _, ok := f.live[name]; !ok {
			missing = &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
		}
		delete(f.live, name)
	})
	if err != nil {
		return err
	}
	return missing
}

// SyncDir implements journal.FS.
func (f *FS) SyncDir(dir string) error {
	return f.call("journal sync", func() {
		for name := range f.durable {
			if _, ok := f.live[name]; !ok && path.Dir(name) == dir {
				delete(f.durable, name)
			}
		}
		for name, data := range f.live {
			if path.Dir(name) == dir {
				f.durable[name] = data
			}
		}
	})
}
