package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// HoldPath is the veto of the host's owner: while the file is there, nothing is changed.
const HoldPath = "/etc/refit/hold"

// hold reads as much of the veto as fits on a line. A file that cannot be read still holds.
func (g *gathering) hold(context.Context) error {
	data, err := os.ReadFile(g.path(HoldPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	g.facts.Hold = &upgrade.HoldFacts{Path: HoldPath, Message: command.Tail(strings.TrimSpace(string(data)), 500)}
	if err != nil {
		return fmt.Errorf("reading the owner's hold: %w", err)
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
