package facts

import (
	"context"
	"fmt"
)

func (g *gathering) packages(ctx context.Context) error {
	g.facts.Packages.Manager = g.facts.OS.Family
	if g.facts.OS.Family != "apt" {
		return g.unsupported()
	}
	p := &g.facts.Packages
	var err error
	p.Installed, err = g.Apt.Query(ctx, g.watched())
	g.problem("packages.installed", err)
	g.authors()
	p.Holds, err = g.Apt.Holds(ctx)
	g.problem("packages.holds", err)
	p.Broken, err = g.Apt.Broken(ctx)
	g.problem("packages.broken", err)
	p.Lock, err = g.Apt.LockHolder()
	g.problem("packages.lock", err) // only root may ask; the packages are known all the same
	return nil
}

// authors are told where they are known; nothing is decided by them.
func (g *gathering) authors() {
	by, err := g.Apt.ChangedBy(g.facts.Packages.Installed)
	g.problem("packages.installed.changedBy", err)
	for i, p := range g.facts.Packages.Installed {
		g.facts.Packages.Installed[i].ChangedBy = by[p.Name]
	}
}

func (g *gathering) unsupported() error {
	if g.facts.OS.Family == "" {
		return fmt.Errorf("the package manager of %q is not known: neither apt, dnf nor zypper", g.facts.OS.ID)
	}
	return fmt.Errorf("packages of %s are not looked at yet", g.facts.OS.Family)
}

func (g *gathering) sources(ctx context.Context) error {
	if g.facts.OS.Family != "apt" {
		return nil
	}
	var err error
	g.facts.Packages.Sources, err = g.Apt.Sources(ctx, g.watched())
	return err
}

func (g *gathering) indexes(ctx context.Context) error {
	if !g.Indexes || g.facts.OS.Family != "apt" {
		return nil
	}
	var err error
	g.facts.Packages.Indexes, err = g.Apt.Indexes(ctx, g.watched())
	return err
}
