package agent

import (
	"slices"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// settleReboot notes when the host asks for no reboot any more, and returns for what it was
// rebooted since. What could not be looked at settles nothing.
func (a *Agent) settleReboot(facts upgrade.Facts) []string {
	unknown := slices.ContainsFunc(facts.Problems, func(p upgrade.Problem) bool { return p.Field == "reboot" || p.Field == "os" })
	if !facts.Reboot.Required && !unknown && facts.Host.BootID != "" {
		_ = a.Store.SettleReboot() // where it cannot be noted, a reboot is rather left out
	}
	return a.Store.Rebooted()
}
