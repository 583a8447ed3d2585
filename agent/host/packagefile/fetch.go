package packagefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Fetch has a file with a known digest at a path: one that is there already is not
// fetched again, and one that is downloaded is not there before its digest is right.
func Fetch(uri, sha256, target, downloads string, download func(partial string) error) error {
	err := Verify(target, sha256)
	if err == nil {
		return nil
	}
	var mismatch *upgrade.Blocked
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &mismatch) {
		return err
	}
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return fmt.Errorf("making the download directory: %w", err)
	}
	partial := filepath.Join(downloads, filepath.Base(target))
	if err := download(partial); err != nil {
		return err
	}
	defer os.Remove(partial) //nolint:errcheck // a leftover is overwritten next time
	if err := Verify(partial, sha256); err != nil {
		// A mirror in the middle of a sync; asked again, the digest stays what the signed index says.
		return Wait("DigestMismatch", "downloading %s: %v; the mirror may be in the middle of a sync", uri, err)
	}
	return files.CopyAtomic(target, partial, 0o644)
}
