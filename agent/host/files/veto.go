package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// maxVeto bounds what is read of a veto: it goes into a status.
const maxVeto = 256

// Veto says whether a file stands in the way, and what it says. Doubt is a veto: a link that
// leads nowhere, a directory, a file that cannot be read. A pipe is one too, and never waited for.
// The error says why nobody knows what it says.
func Veto(path string) (message string, there bool, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", true, fmt.Errorf("reading a veto: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", true, errors.Join(fmt.Errorf("reading a veto: %s is no plain file", path), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxVeto))
	if err != nil {
		err = fmt.Errorf("reading a veto: %w", err)
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "")), true, err
}
