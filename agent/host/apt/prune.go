package apt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// stagedFor is how long files of an earlier plan stay: that plan may still be waiting for its grant.
	stagedFor = 14 * 24 * time.Hour
	// keptFor is how long a rollback can be asked for.
	keptFor = 180 * 24 * time.Hour
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
		removeOlder(a.StageDir(), now.Add(-stagedFor), needed),
		removeOlder(a.BackupDir(), now.Add(-keptFor), needed),
		removeOlder(a.state("apt/download"), now.Add(-stagedFor), nil),
	)
}

func removeOlder(dir string, than time.Time, needed map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // names the directory
	}
	var problems error
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.ModTime().After(than) || needed[strings.TrimSuffix(entry.Name(), ".sha256")] {
			continue
		}
		problems = errors.Join(problems, os.Remove(filepath.Join(dir, entry.Name())))
	}
	return problems
}
