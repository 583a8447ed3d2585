package artefacts

import (
	"context"
	"fmt"
	"time"
)

// Config says which artefacts a fleet needs and where they are kept.
type Config struct {
	// CacheDir is where artefacts are kept. Empty: $REFIT_FLEET_CACHE, else $XDG_CACHE_HOME/refit-fleet, else
	// ~/.cache/refit-fleet.
	CacheDir string
	// Kubernetes lists exact versions, like v1.37.2.
	Kubernetes []string
	// Containerd lists exact versions, like v2.4.2.
	Containerd []string
	// Mirror is the base URL of a mirror of the Kubernetes release site. Empty, or not reachable: the binaries are built
	// from Go modules.
	Mirror string
	// CoreDNS makes the image of the cluster's name server too. Each release of it has dependencies of its own, so that
	// takes about as long as half of Kubernetes; a fleet whose workload looks up no names does without.
	CoreDNS bool
	// Progress is called when work on an item starts, reaches something worth a note, and ends.
	Progress func(Event)
}

// Event is one line of progress.
type Event struct {
	Item    string
	Phase   string
	Done    bool
	Elapsed time.Duration
	Note    string
}

// The phases of an item.
const (
	PhaseMaking  = "making"
	PhaseWaiting = "waiting" // another process makes the same thing
	PhaseMade    = "made"
	PhaseCached  = "cached"
	PhaseFailed  = "failed"
)

// Ensure makes what the cache lacks and returns where everything is.
func Ensure(ctx context.Context, c Config) (*Set, error) {
	m, err := newMaker(c)
	if err != nil {
		return nil, err
	}
	if err := m.preflight(); err != nil {
		return nil, err
	}
	for _, stage := range stages {
		items, err := stage(m)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			if err := m.ensure(ctx, it); err != nil {
				return nil, fmt.Errorf("making %s: %w", it.name, err)
			}
		}
	}
	return m.set()
}

// Estimate names what the cache lacks and says roughly how long making it takes. A Config that Ensure would refuse has
// no estimate.
func Estimate(c Config) (missing []string, eta time.Duration) {
	m, err := newMaker(c)
	if err != nil {
		return nil, 0
	}
	for _, it := range m.missing() {
		missing, eta = append(missing, it.name), eta+it.eta
	}
	return missing, eta
}
