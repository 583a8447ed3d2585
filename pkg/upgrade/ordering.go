package upgrade

// Ordering compares two package versions of one package manager: -1, 0 or 1.
type Ordering func(a, b string) int

// OrderingOf returns how a package manager orders versions; nil for one that Refit does not know.
func OrderingOf(manager string) Ordering {
	switch manager {
	case "apt":
		return CompareDeb
	case "dnf", "zypper":
		return CompareRPM
	}
	return nil
}

// packageUpstream is the upstream part of a package version, parsed: without epoch and revision.
// A revision that starts with rc, beta or alpha is taken for what its packager meant: 0.10.0-rc2 is no 0.10.0.
func packageUpstream(text string) Version {
	parts := splitRPM(text)
	upstream := parts.upstream
	if preRelease.MatchString("-" + parts.revision) {
		upstream += "-" + parts.revision
	}
	v, _ := ParseRelease(upstream)
	v.raw = text
	return v
}
