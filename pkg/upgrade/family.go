package upgrade

import (
	"slices"
	"strings"
)

// families by os-release ids; NAME and PRETTY_NAME are for people and decide nothing.
var families = map[string][]string{
	"apt":    {"debian", "ubuntu"},
	"dnf":    {"rhel", "fedora", "centos", "rocky", "almalinux", "ol", "amzn"},
	"zypper": {"suse", "opensuse", "sles", "opensuse-leap"},
}

// FamilyOf is the package manager of a system, "" when it is not known. It goes by the id itself before what it is like.
func FamilyOf(id string, like []string) string {
	for _, candidate := range append([]string{id}, like...) {
		for family, ids := range families {
			if slices.Contains(ids, strings.ToLower(candidate)) {
				return family
			}
		}
	}
	return ""
}
