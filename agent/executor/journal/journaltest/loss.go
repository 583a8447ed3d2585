package journaltest

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// PowerLoss drops everything that was not synced.
func (f *FS) PowerLoss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	none := func(d *dir) map[string]*file { return d.synced }
	f.dirs = f.left(none, func(at *file) []byte { return at.synced })
}

// Become makes the filesystem what a power loss has left.
func (f *FS) Become(left *FS) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs = left.dirs
}

// Survivors are all states that a power loss now could leave, each one once.
func (f *FS) Survivors() []*FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*FS
	seen := map[string]bool{}
	f.eachNames(slices.Sorted(maps.Keys(f.dirs)), map[string]map[string]*file{}, func(names map[string]map[string]*file) {
		f.eachContent(dirty(names), map[*file][]byte{}, func(content map[*file][]byte) {
			left := &FS{NoSync: f.NoSync, NoSyncDir: f.NoSyncDir}
			left.dirs = f.left(func(d *dir) map[string]*file { return names[f.nameOf(d)] }, func(at *file) []byte {
				if data, chosen := content[at]; chosen {
					return data
				}
				return at.synced
			})
			if key := left.key(); !seen[key] {
				seen[key] = true
				out = append(out, left)
			}
		})
	})
	return out
}

func (f *FS) nameOf(d *dir) string {
	for name, at := range f.dirs {
		if at == d {
			return name
		}
	}
	return ""
}

// eachNames chooses for each directory which of its changes arrived: any of them.
func (f *FS) eachNames(dirs []string, chosen map[string]map[string]*file, do func(map[string]map[string]*file)) {
	if len(dirs) == 0 {
		do(chosen)
		return
	}
	d := f.dirs[dirs[0]]
	for subset := range 1 << min(len(d.pending), maxPending) {
		names := maps.Clone(d.synced)
		for i, c := range d.pending[max(0, len(d.pending)-maxPending):] {
			if subset&(1<<i) != 0 {
				c.apply(names)
			}
		}
		chosen[dirs[0]] = names
		f.eachNames(dirs[1:], chosen, do)
	}
}

// maxPending bounds the choices where nothing is ever synced: the last ones are the telling ones.
const maxPending = 4

// dirty are the files that have a name and content that was not synced.
func dirty(names map[string]map[string]*file) []*file {
	var files []*file
	for _, entries := range names {
		for _, at := range entries {
			if at.dirty && !slices.Contains(files, at) {
				files = append(files, at)
			}
		}
	}
	return files[:min(len(files), maxPending)]
}

// eachContent chooses what of the content that was not synced arrived.
func (f *FS) eachContent(files []*file, chosen map[*file][]byte, do func(map[*file][]byte)) {
	if len(files) == 0 {
		do(chosen)
		return
	}
	at := files[0]
	n := len(at.data)
	for _, data := range [][]byte{at.synced, nil, at.data[:n/2], at.data[:max(0, n-1)], at.data, make([]byte, n)} {
		chosen[at] = data
		f.eachContent(files[1:], chosen, do)
	}
	delete(chosen, at)
}

// left is the tree from the root on: a directory whose own name did not arrive is gone with all that is in it.
func (f *FS) left(namesOf func(*dir) map[string]*file, contentOf func(*file) []byte) map[string]*dir {
	out, copies := map[string]*dir{}, map[*file]*file{}
	var walk func(name string)
	walk = func(name string) {
		d, known := f.dirs[name]
		if !known {
			return
		}
		names := map[string]*file{}
		for entry, at := range namesOf(d) {
			if at == directory {
				names[entry] = at
				walk(path.Join(name, entry))
				continue
			}
			if copies[at] == nil {
				data := contentOf(at)
				copies[at] = &file{data: data, synced: data}
			}
			names[entry] = copies[at]
		}
		out[name] = &dir{names: names, synced: maps.Clone(names)}
	}
	walk("/")
	return out
}

// key is the same for two trees that hold the same.
func (f *FS) key() string {
	var lines []string
	for at, d := range f.dirs {
		for name, file := range d.names {
			kind := "file"
			if file == directory {
				kind = "directory"
			}
			lines = append(lines, fmt.Sprintf("%s %q %q", kind, path.Join(at, name), bytes.TrimSpace(file.data)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
