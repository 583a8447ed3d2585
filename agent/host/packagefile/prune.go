package packagefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// StagedFor is how long files of an earlier plan stay: that plan may still be waiting for its grant.
	StagedFor = 14 * 24 * time.Hour
	// KeptFor is how long a rollback can be asked for.
	KeptFor = 180 * 24 * time.Hour
	// MaxUnneeded bounds what one directory keeps beside what the plan at hand needs.
	MaxUnneeded = 1 << 30
)

// RemoveUnneeded removes files that are older than a time, and the oldest of the
// others where they are more than limit bytes.
func RemoveUnneeded(dir string, than time.Time, limit int64, needed map[string]bool) error {
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
