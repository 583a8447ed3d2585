package apt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// stagedFor is how long files of an earlier plan stay: that plan may still be waiting for its grant.
	stagedFor = 14 * 24 * time.Hour
	// keptFor is how long a rollback can be asked for.
	keptFor = 180 * 24 * time.Hour
	// maxUnneeded bounds what one directory keeps beside what the plan at hand needs.
	maxUnneeded = 1 << 30
)

// prune removes what no plan and no rollback will ask for any more, so that a host
// that is upgraded for years does not fill up.
func (a *Apt) prune(changes []upgrade.PackageChange, now time.Time) error {
	needed := map[string]bool{}
	for _, c := range changes {
		needed[c.File] = true
		needed[fileName(c.Name, c.From)] = true
	}
	return errors.Join(
		removeUnneeded(a.StageDir(), now.Add(-stagedFor), maxUnneeded, needed),
		removeUnneeded(a.BackupDir(), now.Add(-keptFor), maxUnneeded, needed),
		removeUnneeded(a.state("apt/download"), now.Add(-stagedFor), maxUnneeded, nil),
	)
}

// removeUnneeded removes files that are older than a time, and the oldest of the
// others where they are more than limit bytes.
func removeUnneeded(dir string, than time.Time, limit int64, needed map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // names the directory
	}
	var found []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && !needed[strings.TrimSuffix(entry.Name(), ".sha256")] {
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var problems error
	for _, info := range found { // the newest first
		if limit -= info.Size(); info.ModTime().After(than) && limit >= 0 {
			continue
		}
		problems = errors.Join(problems, os.Remove(filepath.Join(dir, info.Name())))
	}
	return problems
}
