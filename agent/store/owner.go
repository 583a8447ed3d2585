package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
)

// stateParts are what belongs to one machine and must not be followed on another.
var stateParts = []string{"plans", "accepting", "operations", "journal", "open", "ended"}

// Claim makes the state directory that of this machine. State that another machine
// wrote, as in a cloned disk image, is moved aside and never followed; moved says where.
func (s *Store) Claim(machineID string) (moved string, err error) {
	if machineID == "" {
		return "", nil
	}
	owner, err := s.Owner()
	if err != nil || owner == machineID {
		return "", err
	}
	if owner != "" {
		if moved, err = s.moveAside(owner); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return moved, fmt.Errorf("making the state directory: %w", err)
	}
	return moved, files.WriteAtomic(s.ownerFile(), []byte(machineID+"\n"), fileMode)
}

func (s *Store) ownerFile() string { return filepath.Join(s.dir, "machine-id") }

// Owner is the machine whose state this is; "" when nobody has claimed it yet.
func (s *Store) Owner() (string, error) {
	text, err := os.ReadFile(s.ownerFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading whose state this is: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// moveAside may be interrupted and repeated: what was moved before is not there to be moved again.
func (s *Store) moveAside(owner string) (string, error) {
	aside := filepath.Join(s.dir, "of-machine-"+plain(owner))
	if err := os.MkdirAll(aside, dirMode); err != nil {
		return "", fmt.Errorf("making a place for the state of machine %s: %w", owner, err)
	}
	for _, part := range stateParts {
		err := os.Rename(filepath.Join(s.dir, part), filepath.Join(aside, part))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("moving the state of machine %s aside: %w", owner, err)
		}
	}
	return aside, nil
}

// plain makes a file name of what a damaged file may hold: a host that could not name the
// place would never start.
func plain(owner string) string {
	const longest = 64 // twice a machine id
	name := strings.Map(func(r rune) rune {
		if r < '0' || r > 'z' || r > '9' && r < 'A' || r > 'Z' && r < 'a' {
			return '_'
		}
		return r
	}, owner)
	return name[:min(len(name), longest)]
}
