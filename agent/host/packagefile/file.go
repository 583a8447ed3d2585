package packagefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// reserve is what stays free after a download, for the journal and the host's own logs.
const reserve = 64 << 20

// Verify compares a file with its digest. A missing file is fs.ErrNotExist.
func Verify(path, sha256 string) error {
	got, err := files.DigestPlain(path)
	if errors.Is(err, files.ErrNotPlain) {
		return Refuse("DigestMismatch", "%v; the file is not used", err)
	}
	if err != nil {
		return err //nolint:wrapcheck // says which file
	}
	if got != sha256 {
		return Refuse("DigestMismatch", "%s has SHA-256 %s, the plan says %s; the file is not used", path, got, sha256)
	}
	return nil
}

// Room refuses a download that would fill the file system.
func Room(dir string, want int64) error {
	var free unix.Statfs_t
	if err := unix.Statfs(dir, &free); err != nil {
		return fmt.Errorf("looking at the free space of %s: %w", dir, err)
	}
	if available := int64(free.Bavail) * free.Bsize; available < want+reserve {
		return Wait("NoSpace", "%s has %d MiB free; %d MiB are to be downloaded, and %d MiB stay free: remove something there", dir, available>>20, want>>20, reserve>>20)
	}
	return nil
}

// Missing is how many bytes of the changes' files are not in the directory yet.
func Missing(dir string, changes []upgrade.PackageChange) int64 {
	var bytes int64
	for _, c := range changes {
		if _, err := os.Stat(filepath.Join(dir, c.File)); c.To != "" && err != nil {
			bytes += c.Size
		}
	}
	return bytes
}

// Record copies a package file to a name under which it is kept.
func Record(target, path string) error {
	if err := files.CopyAtomic(target, path, 0o600); err != nil {
		return err //nolint:wrapcheck // says what it was copying
	}
	return Seal(target)
}

// Seal writes the digest beside a kept file; a file without one was cut off and does not count.
func Seal(target string) error {
	digest, _, err := files.Digest(target)
	if err != nil {
		return err //nolint:wrapcheck // says which file
	}
	return files.WriteAtomic(target+".sha256", []byte(digest+"\n"), 0o600)
}

// Sealed is the digest of a kept file that is whole; fs.ErrNotExist when it was not kept.
func Sealed(path string) (sha256 string, err error) {
	digest, err := os.ReadFile(path + ".sha256")
	if err != nil {
		return "", fmt.Errorf("reading the digest of a kept package file: %w", err)
	}
	sha256 = strings.TrimSpace(string(digest))
	return sha256, Verify(path, sha256)
}

// Refuse is a refusal that does not pass by itself.
func Refuse(reason, format string, args ...any) *upgrade.Blocked {
	return &upgrade.Blocked{Reason: reason, Message: fmt.Sprintf(format, args...), Terminal: true}
}

// Wait is a refusal that may pass by itself.
func Wait(reason, format string, args ...any) *upgrade.Blocked {
	return &upgrade.Blocked{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
