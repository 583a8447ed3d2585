package agent

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// HoldFile reads the veto of the host's owner. One that is there and cannot be read is a veto too.
func HoldFile(path string) func() *upgrade.HoldFacts {
	return func() *upgrade.HoldFacts {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return &upgrade.HoldFacts{Path: path, Message: strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), 256)]), ""))}
	}
}
