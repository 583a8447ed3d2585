package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// packageDatabases are the files that change when packages do, by package manager.
// rpm has several kinds of database: SQLite, its own and that of Berkeley.
var packageDatabases = []string{"/dpkg/status", "/rpm/rpmdb.sqlite", "/rpm/Packages.db", "/rpm/Packages"}

// PackageDatabase says whether a path is the database of a package manager.
func PackageDatabase(path string) bool {
	return slices.ContainsFunc(packageDatabases, func(end string) bool { return strings.HasSuffix(path, end) })
}

// everything stands for all watched files.
const everything = "*"

// packageDirs are the directories with the databases of package managers: newer systems
// with rpm have it under /usr, most with a link in the old place. managedDirs are those with files that Refit keeps on a host, or that say what becomes of them.
var (
	packageDirs = []string{"/var/lib/dpkg", "/var/lib/rpm", "/usr/lib/sysimage/rpm"}
	managedDirs = []string{
		"/etc/kubernetes/kubelet.conf.d", "/etc/systemd/system/kubelet.service.d",
		"/etc/apt", "/etc/apt/sources.list.d", "/etc/yum.repos.d", "/etc/dnf", "/etc/dnf/plugins",
	}
)

// HostDirs are the directories of the host under a root whose files tell of drift.
func HostDirs(root string) []string {
	var out []string
	for _, dir := range append(slices.Clone(packageDirs), managedDirs...) {
		out = append(out, filepath.Join(root, dir))
	}
	return out
}

// ManagedFile says whether a path is among the files that Refit keeps on a host, or beside them.
func ManagedFile(path string) bool { return under(path, managedDirs) }

func under(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasSuffix(filepath.Dir(path), dir) })
}

// FileEvents sends the paths that change in some directories: journals, the package
// database, what Refit keeps on the host, the hold. A directory that is not there yet, or that
// is removed, is watched from when it is there (again).
func FileEvents(ctx context.Context, dirs ...string) (<-chan string, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	w := &dirWatch{Watcher: watcher, dirs: dirs, missing: map[string]bool{}}
	for _, dir := range dirs {
		if _, err := w.watch(dir); err != nil {
			return nil, errors.Join(err, watcher.Close())
		}
	}
	paths := make(chan string)
	go func() {
		defer func() { _ = watcher.Close() }()
		w.forward(ctx, paths)
	}()
	return paths, nil
}

// dirWatch watches directories that come and go.
type dirWatch struct {
	*fsnotify.Watcher
	dirs    []string
	missing map[string]bool // directories whose next of kin is watched for them
}

// watch begins with a directory, or waits for it at the nearest one above that is there.
func (w *dirWatch) watch(dir string) (there bool, err error) {
	err = w.Add(dir)
	if err == nil {
		delete(w.missing, dir)
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("watching %s: %w", dir, err)
	}
	w.missing[dir] = true
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		err := w.Add(above)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || above == filepath.Dir(above) {
			return false, fmt.Errorf("waiting for %s: watching %s: %w", dir, above, err)
		}
	}
	// It may have come while the one above was not watched yet.
	if w.Add(dir) == nil {
		delete(w.missing, dir)
		return true, nil
	}
	return false, nil
}

func (w *dirWatch) forward(ctx context.Context, paths chan<- string) {
	for {
		var path string
		select {
		case <-ctx.Done():
			return
		case event := <-w.Events:
			path = w.take(ctx, event)
		case err := <-w.Errors:
			path = everything // events were lost: whatever they were, looking again finds it
			logr.FromContextOrDiscard(ctx).Info("Events of watched files were lost, looking at all of them", "reason", err.Error())
		}
		if path == "" {
			continue
		}
		select {
		case paths <- path:
		case <-ctx.Done():
			return
		}
	}
}

// take is the path that an event tells of; "" for one that nobody waits for.
func (w *dirWatch) take(ctx context.Context, event fsnotify.Event) string {
	came := w.lookForMissing(ctx, event)
	switch {
	case came:
		return everything // what is in a directory that has just come was not told of
	case slices.Contains(w.dirs, filepath.Dir(event.Name)) && relevant(event.Name):
		return event.Name
	}
	return ""
}

// lookForMissing notes that a watched directory is gone, and begins with those that have come.
func (w *dirWatch) lookForMissing(ctx context.Context, event fsnotify.Event) (came bool) {
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		if slices.Contains(w.dirs, event.Name) {
			w.missing[event.Name] = true
			// Forgotten at once: the end of the old watch may be told after the new one has begun, and would end it.
			_ = w.Remove(event.Name)
		}
	} else if !event.Has(fsnotify.Create) {
		return false
	}
	for dir := range w.missing {
		there, err := w.watch(dir)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Info("A directory cannot be watched, changes in it are seen late", "directory", dir, "reason", err.Error())
		}
		came = came || there
	}
	return came
}

// relevant leaves out temporary files, and all that a package manager writes beside its database.
func relevant(path string) bool {
	if strings.HasPrefix(filepath.Base(path), ".") {
		return false
	}
	return !under(path, packageDirs) || PackageDatabase(path)
}
