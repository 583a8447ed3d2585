package store

import (
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Kept is what Refit left on this host, by its own journals: those that are gone, or cannot be
// read, say nothing.
func (s *Store) Kept() upgrade.Kept {
	records, _ := journal.NewStore(s.dir).List() // oldest first; what could not be read is left out
	var kept upgrade.Kept
	for _, r := range records {
		if r.State == journal.Successful {
			kept.Take(r.Operation.Plan.Steps)
		}
	}
	return kept
}
