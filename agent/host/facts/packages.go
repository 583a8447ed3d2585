package facts

import (
	"context"
	"errors"

	"github.com/refit-dev/refit/agent/host/osrelease"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// PackageManager tells what is installed, and where packages come from. Nothing is fetched.
type PackageManager interface {
	Query(ctx context.Context, names []string) ([]upgrade.InstalledPackage, error)
	Holds(ctx context.Context) ([]string, error)
	Broken(ctx context.Context) ([]string, error)
	ChangedBy(installed []upgrade.InstalledPackage) (map[string]string, error)
	LockHolder() (*upgrade.LockFacts, error)
	Sources(ctx context.Context, packages []string) ([]upgrade.SourceFacts, error)
	Indexes(ctx context.Context, packages []string) ([]upgrade.IndexFacts, error)
}

// manager is that of the system that the os probe has found.
func (g *gathering) manager() PackageManager {
	return g.Manager(g.Root, osrelease.Release{ID: g.facts.OS.ID, Family: g.facts.OS.Family})
}

func (g *gathering) packages(ctx context.Context) error {
	g.facts.Packages.Manager = g.facts.OS.Family
	m := g.manager()
	p := &g.facts.Packages
	var err error
	if p.Installed, err = m.Query(ctx, g.watched()); refused(err) {
		return err
	}
	g.problem("packages.installed", err)
	g.authors(m)
	p.Holds, err = m.Holds(ctx)
	g.problem("packages.holds", err)
	p.Broken, err = m.Broken(ctx)
	g.problem("packages.broken", err)
	p.Lock, err = m.LockHolder()
	g.problem("packages.lock", err) // only root may ask; the packages are known all the same
	return nil
}

// refused says that packages of this system are not looked at at all.
func refused(err error) bool {
	var blocked *upgrade.Blocked
	return errors.As(err, &blocked) && blocked.Reason == upgrade.ReasonUnsupportedOS
}

// authors are told where they are known; nothing is decided by them.
func (g *gathering) authors(m PackageManager) {
	by, err := m.ChangedBy(g.facts.Packages.Installed)
	g.problem("packages.installed.changedBy", err)
	for i, p := range g.facts.Packages.Installed {
		g.facts.Packages.Installed[i].ChangedBy = by[p.Name]
	}
}

func (g *gathering) sources(ctx context.Context) error {
	var err error
	if g.facts.Packages.Sources, err = g.manager().Sources(ctx, g.watched()); refused(err) {
		return nil // said by the probe of packages
	}
	return err
}

func (g *gathering) indexes(ctx context.Context) error {
	if !g.Indexes {
		return nil
	}
	var err error
	if g.facts.Packages.Indexes, err = g.manager().Indexes(ctx, g.watched()); refused(err) {
		return nil // said by the probe of packages
	}
	return err
}
