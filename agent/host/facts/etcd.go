package facts

import (
	"context"
	"fmt"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/etcdunit"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// etcd is asked through the member on this host, or through those that the API server names.
func (g *gathering) etcd(ctx context.Context) (err error) {
	if g.Etcd == nil {
		return nil
	}
	g.facts.Etcd, err = g.Etcd.Look(ctx)
	return err //nolint:wrapcheck // says whom it asked
}

// etcdUnit is an etcd that is a program of its own here, and what a restart of it would run.
func (g *gathering) etcdUnit(ctx context.Context) error {
	status, err := g.Units.Status(ctx, upgrade.UnitEtcd)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", upgrade.UnitEtcd, err)
	}
	if !etcdunit.Wanted(status) {
		return nil
	}
	u := &upgrade.EtcdUnitFacts{Unit: upgrade.UnitEtcd, Active: status.ActiveState == "active"}
	g.facts.EtcdUnit = u
	program := command.Find("etcd")
	if status.MainPID != 0 {
		if path, err := programOf(status.MainPID); err == nil {
			program = path
		}
		flag, err := etcdunit.OfProcess("/proc", g.Root, status.MainPID)
		if err == nil {
			u.Endpoint, _, _ = strings.Cut(flag("listen-client-urls"), ",")
		}
		g.problem("etcdUnit.endpoint", err)
	}
	g.problem("etcdUnit.installed", g.installedEtcd(ctx, program, u))
	return nil
}

func (g *gathering) installedEtcd(ctx context.Context, program string, u *upgrade.EtcdUnitFacts) error {
	if program == "" {
		return fmt.Errorf("looking for the program of etcd: %s does not run, and there is none where programs are looked for", u.Unit)
	}
	result, err := g.Runner.Run(ctx, command.Command{Argv: []string{program, "--version"}})
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", program, err)
	}
	u.Installed, err = programVersion(result.Stdout)
	return err
}
