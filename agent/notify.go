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

// PackageDirs are the directories with the databases of package managers. Newer systems
// with rpm have it under /usr, most with a link in the old place.
var PackageDirs = []string{"/var/lib/dpkg", "/var/lib/rpm", "/usr/lib/sysimage/rpm"}

// FileEvents sends the paths that change in some directories: journals, the package
// database, the hold. A directory that does not exist is left out.
func FileEvents(ctx context.Context, dirs ...string) (<-chan string, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	for _, dir := range dirs {
		if err := watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("watching %s: %w", dir, err), watcher.Close())
		}
	}
	paths := make(chan string)
	go func() {
		defer func() { _ = watcher.Close() }()
		forward(ctx, watcher, paths)
	}()
	return paths, nil
}

func forward(ctx context.Context, watcher *fsnotify.Watcher, paths chan<- string) {
	for {
		var path string
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			path = event.Name
		case err := <-watcher.Errors:
			path = everything // events were lost: whatever they were, looking again finds it
			logr.FromContextOrDiscard(ctx).Info("Events of watched files were lost, looking at all of them", "reason", err.Error())
		}
		if !relevant(path) {
			continue
		}
		select {
		case paths <- path:
		case <-ctx.Done():
			return
		}
	}
}

// relevant leaves out temporary files, and all that a package manager writes beside its database.
func relevant(path string) bool {
	if strings.HasPrefix(filepath.Base(path), ".") {
		return false
	}
	inDatabase := slices.ContainsFunc(PackageDirs, func(dir string) bool { return filepath.Dir(path) == dir })
	return !inDatabase || PackageDatabase(path)
}
