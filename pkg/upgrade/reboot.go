package upgrade

import (
	"slices"
	"strings"
)

// hostsReboot is the reason for a reboot that the host itself asks for. The versions are in
// it: the same package at another version is another reason.
func hostsReboot(f Facts) string {
	wants := f.Reboot.Versions
	if len(wants) == 0 {
		wants = f.Reboot.Packages
	}
	wants = slices.Clone(wants)
	slices.Sort(wants)
	return "the host asks for a reboot: " + listOr(slices.Compact(wants), "it does not say for what")
}

// StayingReboot says that the host asks for a reboot that it has had for this very reason;
// "" where it does not. rebooted are the reasons since it last asked for none.
func StayingReboot(f Facts, rebooted []string) string {
	reason := hostsReboot(f)
	if !f.Reboot.Required || !slices.Contains(rebooted, reason) {
		return ""
	}
	return "the host was rebooted and still asks for it:" + strings.TrimPrefix(reason, "the host asks for a reboot:")
}
