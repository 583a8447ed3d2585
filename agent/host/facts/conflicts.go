package facts

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// foreignUnits change packages or reboot by their own clock. They are named and never turned off.
var foreignUnits = map[string]string{
	"dnf-automatic.timer":         "dnf-automatic",
	"dnf-automatic-install.timer": "dnf-automatic",
	"locksmithd.service":          "locksmithd",
	"update-engine.service":       "update-engine",
	"transactional-update.timer":  "transactional-update",
	"rebootmgr.service":           "rebootmgr",
	"os-update.timer":             "os-update",
	"snapd.refresh.timer":         "snapd",
}

func (g *gathering) conflicts(ctx context.Context) error {
	if g.facts.OS.Family == "apt" {
		if err := g.unattended(ctx); err != nil {
			g.problem("conflictingManagers", err)
		}
	}
	g.foreignPods()
	for _, unit := range sortedKeys(foreignUnits) {
		status, err := g.Units.Status(ctx, unit)
		if err != nil {
			return fmt.Errorf("looking for other updaters: %w", err)
		}
		if status.ActiveState == "active" || status.ActiveState == "activating" {
			g.facts.Conflicts = append(g.facts.Conflicts, upgrade.ConflictFacts{Name: foreignUnits[unit], Detail: unit + " is active"})
		}
	}
	return nil
}

// foreignContainers are known by their name, since a DaemonSet has no unit on the host.
var foreignContainers = []string{"kured"}

func (g *gathering) foreignPods() {
	for _, c := range g.containers {
		if slices.Contains(foreignContainers, c.Name) {
			g.facts.Conflicts = append(g.facts.Conflicts, upgrade.ConflictFacts{Name: c.Name, Detail: "a container of namespace " + c.Namespace})
		}
	}
}

// unattended reads apt's effective configuration, from whatever file it comes.
func (g *gathering) unattended(ctx context.Context) error {
	result, err := g.Runner.Run(ctx, command.Command{Argv: []string{"apt-config", "dump"}})
	if err != nil {
		return fmt.Errorf("reading apt's configuration: %w", err)
	}
	g.facts.Conflicts = append(g.facts.Conflicts, unattendedIn(result.Stdout)...)
	return nil
}

var aptSetting = regexp.MustCompile(`(?m)^(APT::Periodic::Unattended-Upgrade|Unattended-Upgrade::Automatic-Reboot) "(.*)";$`)

func unattendedIn(dump string) []upgrade.ConflictFacts {
	var conflicts []upgrade.ConflictFacts
	for _, m := range aptSetting.FindAllStringSubmatch(dump, -1) {
		switch strings.ToLower(m[2]) {
		case "", "0", "false", "no":
			continue
		}
		conflicts = append(conflicts, upgrade.ConflictFacts{Name: "unattended-upgrades", Detail: m[1] + " is " + m[2]})
	}
	return conflicts
}
