// Package forecasts keeps what is foreseen of the drains of the machines that are next:
// each is followed by watches of its own node's pods and of the budgets, which all share,
// so that a drain that can never succeed is known before its turn comes. The number that
// is followed is the caller's to bound.
package forecasts

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Request is one drain to be foreseen.
type Request struct {
	Machine    types.NamespacedName
	Generation int64
	Node       string
	Options    drain.Options
	// Version changes with everything that makes another forecast, but for pods and budgets.
	Version string
}

// Book of the forecasts. All fields are needed.
type Book struct {
	// Base ends everything that is followed.
	Base context.Context //nolint:containedctx // what is followed outlives the reconcile that asks for it
	// Client of the cluster that has the nodes.
	Client kubernetes.Interface
	// Changed is told which machine has another forecast.
	Changed func(types.NamespacedName)
	// Now is the clock.
	Now func() time.Time

	mu       sync.Mutex
	cluster  *drain.Cluster
	known    map[types.NamespacedName]*page
	followed map[types.NamespacedName]*follower
}

// page is what is known of one machine.
type page struct {
	forecast   fleet.Forecast
	generation int64
	at         time.Time // of the last word
	told       time.Time // when Changed was last called
}

type follower struct {
	version string
	stop    context.CancelFunc
}

// Keeps is how long a forecast counts that is not followed.
const Keeps = 10 * time.Minute

// quiet is how long a machine is not told again where only the words have changed.
const quiet = 30 * time.Second

// askTimeout bounds one forecast that somebody waits for.
const askTimeout = 15 * time.Second

// Known is what is foreseen for the machine at this generation of its spec, if anything.
func (b *Book) Known(machine types.NamespacedName, generation int64) (fleet.Forecast, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.known[machine]
	if p == nil || p.generation != generation || (b.followed[machine] == nil && b.Now().Sub(p.at) > Keeps) {
		return fleet.Forecast{}, false
	}
	return p.forecast, true
}

// Ask makes a forecast now, and remembers it for a while.
func (b *Book) Ask(ctx context.Context, req Request) fleet.Forecast {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	f, err := b.drainer(req).Forecast(ctx, req.Node)
	out := Word(f, err)
	b.remember(req, out)
	return out
}

// Follow keeps up to date what is foreseen for these machines of a namespace, and for no other.
func (b *Book) Follow(namespace string, next []Request) {
	wanted := map[types.NamespacedName]bool{}
	for _, req := range next {
		wanted[req.Machine] = true
		b.follow(req)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for machine, f := range b.followed {
		if machine.Namespace == namespace && !wanted[machine] {
			f.stop()
			delete(b.followed, machine)
		}
	}
	for machine, p := range b.known {
		if b.followed[machine] == nil && b.Now().Sub(p.at) > Keeps {
			delete(b.known, machine)
		}
	}
}

func (b *Book) follow(req Request) {
	drainer := b.drainer(req)
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.followed[req.Machine]; old != nil {
		if old.version == req.Version {
			return
		}
		old.stop()
	}
	ctx, stop := context.WithCancel(b.Base)
	if b.followed == nil {
		b.followed = map[types.NamespacedName]*follower{}
	}
	b.followed[req.Machine] = &follower{version: req.Version, stop: stop}
	go drainer.Follow(ctx, req.Node, func(f drain.Forecast, err error) {
		if ctx.Err() == nil {
			b.remember(req, Word(f, err))
		}
	})
}

func (b *Book) drainer(req Request) *drain.Drainer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cluster == nil {
		b.cluster = drain.NewCluster(b.Client)
	}
	return b.cluster.Drainer(req.Options)
}

func (b *Book) remember(req Request, f fleet.Forecast) {
	b.mu.Lock()
	if b.known == nil {
		b.known = map[types.NamespacedName]*page{}
	}
	p := b.known[req.Machine]
	if p == nil {
		p = &page{}
		b.known[req.Machine] = p
	}
	now := b.Now()
	same := p.forecast.Status == f.Status && p.forecast.Reason == f.Reason && p.generation == req.Generation
	tell := !same || (p.forecast != f && now.Sub(p.told) >= quiet)
	p.forecast, p.generation, p.at = f, req.Generation, now
	if tell {
		p.told = now
	}
	b.mu.Unlock()
	if tell {
		b.Changed(req.Machine)
	}
}

// Word is what a forecast means for the machine: only a drain that can never succeed is
// kept from being begun, and what could not be found out is found out by the drain.
func Word(f drain.Forecast, err error) fleet.Forecast {
	var blocked *drain.Blocked
	switch {
	case errors.As(err, &blocked):
		return fleet.Forecast{Status: metav1.ConditionUnknown, Reason: blocked.Reason, Message: blocked.Message}
	case err != nil:
		return fleet.Forecast{Status: metav1.ConditionUnknown, Reason: status.ReasonForecastFailed, Message: err.Error()}
	}
	switch f.Outlook {
	case drain.OutlookNever:
		return fleet.Forecast{Status: metav1.ConditionFalse, Reason: f.Reason, Message: f.Message}
	case drain.OutlookWait:
		return fleet.Forecast{Status: metav1.ConditionTrue, Reason: status.ReasonDrainWaits, Message: f.Message}
	case drain.OutlookNow:
	}
	return fleet.Forecast{Status: metav1.ConditionTrue, Reason: status.ReasonDrainFree, Message: f.Message}
}
