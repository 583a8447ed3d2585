package facts

import (
	"context"
	"slices"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/policy"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// HoldPath is the veto of the host's owner: while the file is there, nothing is changed.
const HoldPath = "/etc/refit/hold"

// hold reads as much of the veto as fits on a line. A file that cannot be read still holds.
func (g *gathering) hold(context.Context) error {
	message, there, err := files.Veto(g.path(HoldPath))
	if there {
		g.facts.Hold = &upgrade.HoldFacts{Path: HoldPath, Message: message}
	}
	return err //nolint:wrapcheck // says what it was reading
}

// policy is read as the executor reads it. One that cannot be gone by is told in its place.
func (g *gathering) policy(context.Context) error {
	g.facts.Policy = policy.Policy{Root: g.Root, Owner: g.Owner}.Read()
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
