// Package journaltest is a filesystem in memory for tests of journals. It has a point
// before and after each effect, and knows what a power loss would leave at each:
//
//	what was synced        is there
//	content not synced     is the old one, none, a part, all of it, or as long as it with nothing in it
//	a name not synced      is there or not, whatever became of the names beside it
//
// That is less than any real filesystem promises: who survives here survives there.
package journaltest

import (
	"io/fs"
	"maps"
	"path"
	"sync"

	"github.com/refit-dev/refit/agent/executor/journal"
)

// Points is told of every effect; it may fail one, or end the process.
type Points interface {
	Before(label string) error
	After(label string)
}

// file is an inode: what is in it now, and what is known to be on disk.
type file struct {
	data, synced []byte
	dirty        bool
}

// change is what one call did to the names of a directory, in one piece. A nil file is a name that went.
type change map[string]*file

// dir is a directory: its names now, those that are known to be on disk, and the changes between.
type dir struct {
	names, synced map[string]*file
	pending       []change
}

// FS implements journal.FS.
type FS struct {
	// NoSync and NoSyncDir are a filesystem that says yes and does nothing.
	NoSync, NoSyncDir bool

	mu     sync.Mutex
	points Points
	dirs   map[string]*dir
}

// New is an empty filesystem; points may be nil.
func New(points Points) *FS { return &FS{points: points, dirs: map[string]*dir{}} }

// Have makes directories that were there before.
func (f *FS) Have(name string) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; name != path.Dir(name); name = path.Dir(name) {
		parent := f.dir(path.Dir(name))
		parent.names[path.Base(name)], parent.synced[path.Base(name)] = directory, directory
	}
	return f
}

// SetPoints changes who is told.
func (f *FS) SetPoints(points Points) { f.points = points }

// Corrupt changes the content of a file behind everybody's back.
func (f *FS) Corrupt(name string, change func([]byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.at(name)
	at.data = change(append([]byte(nil), at.data...))
	at.synced = at.data
}

// Names of all files.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for at, d := range f.dirs {
		for name, file := range d.names {
			if file != directory {
				names = append(names, path.Join(at, name))
			}
		}
	}
	return names
}

// directory is what stands for a directory among the names of its parent.
var directory = &file{}

func (f *FS) dir(name string) *dir {
	d, ok := f.dirs[name]
	if !ok {
		d = &dir{names: map[string]*file{}, synced: map[string]*file{}}
		f.dirs[name] = d
	}
	return d
}

func (f *FS) at(name string) *file { return f.dir(path.Dir(name)).names[path.Base(name)] }

func (d *dir) change(c change) {
	d.pending = append(d.pending, c)
	c.apply(d.names)
}

func (c change) apply(names map[string]*file) {
	for name, file := range c {
		if file == nil {
			delete(names, name)
			continue
		}
		names[name] = file
	}
}

func (f *FS) call(label string, effect func() error) error {
	if f.points != nil {
		if err := f.points.Before(label); err != nil {
			return err
		}
	}
	f.mu.Lock()
	err := effect()
	f.mu.Unlock()
	if err == nil && f.points != nil {
		f.points.After(label)
	}
	return err
}

func missing(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// ReadFile implements journal.FS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.at(name)
	if file == nil {
		return nil, missing("open", name)
	}
	return file.data, nil
}

// ReadDir implements journal.FS.
func (f *FS) ReadDir(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for entry, file := range f.dir(name).names {
		if file != directory {
			names = append(names, entry)
		}
	}
	if names == nil {
		return nil, missing("open", name)
	}
	return names, nil
}

// MkdirAll implements journal.FS.
func (f *FS) MkdirAll(name string, _ fs.FileMode) error {
	return f.call("journal mkdir", func() error {
		for ; name != path.Dir(name); name = path.Dir(name) {
			if parent := f.dir(path.Dir(name)); parent.names[path.Base(name)] == nil {
				parent.change(change{path.Base(name): directory})
			}
		}
		return nil
	})
}

// Create implements journal.FS.
func (f *FS) Create(name string, _ fs.FileMode) (journal.File, error) {
	var h *handle
	err := f.call("journal create", func() error {
		at := f.at(name)
		if at == nil {
			at = &file{}
			f.dir(path.Dir(name)).change(change{path.Base(name): at})
		}
		at.data, at.dirty = nil, true
		h = &handle{f, at}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

type handle struct {
	fs   *FS
	file *file
}

// Write implements journal.File.
func (h *handle) Write(data []byte) (int, error) {
	err := h.fs.call("journal write", func() error {
		h.file.data, h.file.dirty = append(h.file.data[:len(h.file.data):len(h.file.data)], data...), true
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// Sync implements journal.File.
func (h *handle) Sync() error {
	return h.fs.call("journal sync", func() error {
		if !h.fs.NoSync {
			h.file.synced, h.file.dirty = h.file.data, false
		}
		return nil
	})
}

// Close implements journal.File.
func (h *handle) Close() error { return nil }

// Rename implements journal.FS; both names are of one directory.
func (f *FS) Rename(from, to string) error {
	return f.call("journal rename", func() error {
		at := f.at(from)
		if at == nil {
			return missing("rename", from)
		}
		f.dir(path.Dir(to)).change(change{path.Base(from): nil, path.Base(to): at})
		return nil
	})
}

// Remove implements journal.FS.
func (f *FS) Remove(name string) error {
	return f.call("journal remove", func() error {
		if f.at(name) == nil {
			return missing("remove", name)
		}
		f.dir(path.Dir(name)).change(change{path.Base(name): nil})
		return nil
	})
}

// SyncDir implements journal.FS.
func (f *FS) SyncDir(name string) error {
	return f.call("journal sync directory", func() error {
		if d := f.dir(name); !f.NoSyncDir {
			d.synced, d.pending = maps.Clone(d.names), nil
		}
		return nil
	})
}
