package upgrade

import "strings"

// CompareDeb orders two Debian package versions as dpkg does: -1, 0 or 1. Never
// mix it with the order of Kubernetes versions.
func CompareDeb(a, b string) int {
	x, y := splitDeb(a), splitDeb(b)
	if c := compareDigits(x.epoch, y.epoch); c != 0 {
		return c
	}
	if c := compareDebPart(x.upstream, y.upstream); c != 0 {
		return c
	}
	return compareDebPart(x.revision, y.revision)
}

// debVersion is [epoch:]upstream[-revision]; the revision follows the last dash.
type debVersion struct{ epoch, upstream, revision string }

func splitDeb(text string) debVersion {
	var v debVersion
	v.upstream = text
	if epoch, rest, found := strings.Cut(text, ":"); found {
		v.epoch, v.upstream = epoch, rest
	}
	if i := strings.LastIndexByte(v.upstream, '-'); i >= 0 {
		v.upstream, v.revision = v.upstream[:i], v.upstream[i+1:]
	}
	return v
}

// compareDebPart walks non-digits and digits in turn, as dpkg's verrevcmp does.
func compareDebPart(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a = spanNonDigits(a)
		y, b = spanNonDigits(b)
		if c := compareDebText(x, y); c != 0 {
			return c
		}
		x, a = spanDigits(a)
		y, b = spanDigits(b)
		if c := compareDigits(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// compareDebText orders texts without digits: ~ before the end, the end before letters, letters before the rest.
func compareDebText(a, b string) int {
	for i := 0; i < len(a) || i < len(b); i++ {
		if c := debWeight(a, i) - debWeight(b, i); c != 0 {
			return sign(c)
		}
	}
	return 0
}

func debWeight(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case isLetter(s[i]):
		return int(s[i])
	default:
		return int(s[i]) + 256
	}
}

// compareDigits compares numbers of any length; none counts as 0.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return sign(len(a) - len(b))
	}
	return strings.Compare(a, b)
}

func spanDigits(s string) (head, tail string) { return span(s, isDigit) }
func spanNonDigits(s string) (head, tail string) {
	return span(s, func(c byte) bool { return !isDigit(c) })
}

func span(s string, in func(byte) bool) (head, tail string) {
	i := 0
	for i < len(s) && in(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
