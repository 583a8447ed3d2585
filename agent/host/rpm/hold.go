package rpm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/files"
)

// A package is on hold when dnf or zypper would leave it where it is: by a lock, or by an
// exclude= of the repository that it comes from, or of dnf as a whole, as the
// installation guide of Kubernetes has it.
//
// rpm knows neither, so nothing is lifted for a transaction of ours and nothing has to be
// restored after it, however it ends. A version lock says a version, though: a step that
// takes it off and one that puts it on again make it say the new one. Excludes are the
// host owner's and stay as they are found.

// lockList is how dnf or zypper keeps its locks in a file.
type lockList interface {
	// file as the host calls it.
	file() string
	// names that are locked, which may be patterns, or regular expressions behind a slash.
	names(content string) []string
	// without takes the locks of exactly these names off.
	without(content string, names []string) string
	// with locks packages, at the version that is installed where a lock has one.
	with(content string, locked []header) string
}

func (r *RPM) readLocks(l lockList) (string, error) {
	data, err := os.ReadFile(r.path(l.file()))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the version locks: %w", err)
	}
	return string(data), nil
}

// Holds are the installed packages that dnf or zypper would leave where they are.
func (r *RPM) Holds(ctx context.Context) ([]string, error) {
	l := r.dialect.locks(r)
	content, err := r.readLocks(l)
	if err != nil {
		return nil, err
	}
	excludes, err := r.excludes()
	if err != nil {
		return nil, err
	}
	patterns := append(l.names(content), excludes...)
	if len(patterns) == 0 {
		return nil, nil
	}
	found, err := r.installed(ctx)
	if err != nil {
		return nil, err
	}
	var holds []string
	for _, h := range found {
		if matches(patterns, h.name) && !slices.Contains(holds, h.name) {
			holds = append(holds, h.name)
		}
	}
	slices.Sort(holds)
	return holds, nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if expression, found := strings.CutPrefix(pattern, "/"); found {
			ok, err := regexp.MatchString(expression, name)
			return err == nil && ok
		}
		ok, err := path.Match(pattern, name)
		return pattern == name || err == nil && ok
	})
}

// excludes are the patterns of all enabled repositories and of dnf as a whole.
func (r *RPM) excludes() ([]string, error) {
	if !r.dialect.excludes {
		return nil, nil
	}
	repos, err := r.repos()
	if err != nil {
		return nil, err
	}
	patterns := r.main().excludes()
	for _, p := range repos {
		patterns = append(patterns, p.excludes()...)
	}
	return patterns, nil
}

// SetHold puts packages on hold or takes them off. Packages that are not installed
// cannot be held and are passed over; what an exclude= holds is left to it.
func (r *RPM) SetHold(ctx context.Context, names []string, held bool) error {
	if err := kind.CheckNames(names); err != nil || len(names) == 0 {
		return err
	}
	known, err := r.installed(ctx, names...)
	if err != nil {
		return err
	}
	l := r.dialect.locks(r)
	if err := r.waitForWriter(ctx, l); err != nil {
		return err
	}
	before, err := r.readLocks(l)
	if err != nil {
		return err
	}
	after := l.without(before, names)
	if held {
		excludes, err := r.excludes()
		if err != nil {
			return err
		}
		known = slices.DeleteFunc(known, func(h header) bool { return matches(excludes, h.name) })
		slices.SortFunc(known, func(a, b header) int { return strings.Compare(a.name, b.name) })
		known = slices.CompactFunc(known, func(a, b header) bool { return a.name == b.name })
		after = l.with(after, known)
		if len(known) > 0 {
			r.warnWithoutPlugin(ctx, l)
		}
	}
	if after == before {
		return nil
	}
	target := r.path(l.file())
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("making the directory of the version locks: %w", err)
	}
	return files.WriteAtomic(target, []byte(after), 0o644)
}

// waitForWriter waits until nobody else may write the locks: zypper writes the whole file anew at its end.
func (r *RPM) waitForWriter(ctx context.Context, l lockList) error {
	if _, ok := l.(zyppLocks); ok {
		return r.waitLock(ctx)
	}
	return nil
}

// warnWithoutPlugin says that dnf 4 does not look at its locks: they count once the plugin is there.
func (r *RPM) warnWithoutPlugin(ctx context.Context, l lockList) {
	if _, ok := l.(listLocks); !ok {
		return
	}
	for _, pattern := range []string{"usr/lib/python3*/site-packages/dnf-plugins/versionlock.py", "usr/lib/python3/dist-packages/dnf-plugins/versionlock.py"} {
		if found, err := filepath.Glob(r.path(pattern)); err == nil && len(found) > 0 {
			return
		}
	}
	logr.FromContextOrDiscard(ctx).Info("A version lock has no effect until dnf has its plugin", "file", l.file(), "install", "python3-dnf-plugin-versionlock")
}
