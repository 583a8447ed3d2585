package simulation

import (
	"context"
	"time"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/forecasts"
	"k8s.io/apimachinery/pkg/types"
)

// book keeps the forecasts as forecasts.Book does: those that are followed are always up to
// date, others count for a while.
type book struct {
	e     *Engine
	pages map[types.NamespacedName]*page
}

type page struct {
	req      forecasts.Request
	forecast fleet.Forecast
	at       time.Time
	news     int // of the pods that it was made from
	followed bool
}

// Known implements rollout.Forecaster.
func (b *book) Known(machine types.NamespacedName, generation int64) (fleet.Forecast, bool) {
	p := b.pages[machine]
	if p == nil || p.req.Generation != generation || (!p.followed && b.e.now.Sub(p.at) > forecasts.Keeps) {
		return fleet.Forecast{}, false
	}
	if p.followed {
		b.refresh(p)
	}
	return p.forecast, true
}

// Ask implements rollout.Forecaster.
func (b *book) Ask(_ context.Context, req forecasts.Request) fleet.Forecast {
	p := &page{req: req, news: -1}
	b.refresh(p)
	b.pages[req.Machine] = p
	return p.forecast
}

func (b *book) refresh(p *page) {
	if p.news == b.e.world.podNews {
		return
	}
	f, err := b.e.foresee(p.req.Node, p.req.Options)
	p.forecast, p.news, p.at = forecasts.Word(f, err), b.e.world.podNews, b.e.now
}

// Follow implements rollout.Forecaster.
func (b *book) Follow(_ string, next []forecasts.Request) {
	wanted := map[types.NamespacedName]bool{}
	for _, req := range next {
		wanted[req.Machine] = true
		p := b.pages[req.Machine]
		if p == nil || p.req.Version != req.Version {
			p = &page{req: req, news: -1}
			b.refresh(p)
			b.pages[req.Machine] = p
			b.e.wake(req.Machine.Name)
		}
		p.followed = true
	}
	for machine, p := range b.pages {
		if wanted[machine] {
			continue
		}
		p.followed = false
		if b.e.now.Sub(p.at) > forecasts.Keeps {
			delete(b.pages, machine)
		}
	}
}

// news looks again at what is followed, and tells of what has changed.
func (b *book) news() {
	for machine, p := range b.pages {
		if before := p.forecast; p.followed {
			if b.refresh(p); p.forecast.Status != before.Status || p.forecast.Reason != before.Reason {
				b.e.wake(machine.Name)
			}
		}
	}
}
