package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Security is what was found of security updates. It is kept so that an agent that starts
// again does not ask every repository once more.
type Security struct {
	CheckTime time.Time           `json:"checkTime"`
	Updates   []upgrade.Candidate `json:"updates"`
}

func (s *Store) securityPath() string { return filepath.Join(s.dir, "security.json") }

// Security is what was found last; fs.ErrNotExist when nobody has looked.
func (s *Store) Security() (Security, error) {
	var found Security
	text, err := os.ReadFile(s.securityPath())
	if err != nil {
		return found, fmt.Errorf("reading state: %w", err)
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return found, fmt.Errorf("reading %s: %w", s.securityPath(), err)
	}
	return found, nil
}

// SaveSecurity keeps what was found.
func (s *Store) SaveSecurity(found Security) error {
	text, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", s.securityPath(), err)
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	return files.WriteAtomic(s.securityPath(), append(text, '\n'), fileMode)
}
