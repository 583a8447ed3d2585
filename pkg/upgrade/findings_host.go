package upgrade

import (
	"strconv"
	"strings"
)

// foreignManagers names other updaters; Refit never turns them off by itself.
func foreignManagers(p *planner) []Finding {
	var out []Finding
	for _, c := range p.in.Facts.Conflicts {
		out = append(out, warning(FindingConflictingManager, "%s is active on this host too and may change packages or reboot it at any time (%s): turn it off, or leave to it what spec does not name", c.Name, firstOf(c.Detail, "no details")))
	}
	return out
}

// ownersHold says that no grant will be accepted for now.
func ownersHold(p *planner) []Finding {
	if h := p.in.Facts.Hold; h != nil {
		return []Finding{HoldFinding(*h)}
	}
	return nil
}

// Words are the file and what its owner wrote into it.
func (h HoldFacts) Words() string {
	if text := strings.TrimSpace(h.Message); text != "" {
		return h.Path + " (" + strconv.Quote(text) + ")"
	}
	return h.Path
}

// HoldFinding tells of the veto of the host's owner.
func HoldFinding(h HoldFacts) Finding {
	return warning(FindingHeldByOwner, "%s says %q: this host accepts no grant until its owner removes the file", h.Path, strings.TrimSpace(h.Message))
}

// pendingReboot says that the host waits for a reboot that this plan does not bring:
// until then, part of what is installed does not run.
func pendingReboot(p *planner) []Finding {
	r := p.in.Facts.Reboot
	if !r.Required || p.reboots() {
		return nil
	}
	if staying := StayingReboot(p.in.Facts, p.in.Rebooted); staying != "" {
		return []Finding{warning(FindingRebootStays, "%s: it is not rebooted for that again; see on the host what keeps the flag up", staying)}
	}
	return []Finding{warning(FindingRebootRequired, "this host asks for a reboot (%s), and this plan does not reboot it: set spec.os.reboot to IfRequired, or reboot it yourself", listOr(r.Packages, "it does not say for what"))}
}
