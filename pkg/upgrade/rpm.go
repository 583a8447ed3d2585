package upgrade

import "strings"

// CompareRPM orders two package versions [epoch:]version[-release] as rpm does: -1, 0 or 1.
// A version without a release is older than any release of it.
func CompareRPM(a, b string) int {
	x, y := splitRPM(a), splitRPM(b)
	if c := compareDigits(x.epoch, y.epoch); c != 0 {
		return c
	}
	if c := compareRPMPart(x.upstream, y.upstream); c != 0 {
		return c
	}
	if x.revision == "" || y.revision == "" {
		return sign(len(x.revision) - len(y.revision))
	}
	return compareRPMPart(x.revision, y.revision)
}

// splitRPM takes epoch and release off; the epoch is digits only, as rpm demands.
func splitRPM(text string) debVersion {
	v := debVersion{upstream: text}
	if digits, rest := spanDigits(text); strings.HasPrefix(rest, ":") {
		v.epoch, v.upstream = digits, rest[1:]
	}
	if i := strings.LastIndexByte(v.upstream, '-'); i >= 0 {
		v.upstream, v.revision = v.upstream[:i], v.upstream[i+1:]
	}
	return v
}

// compareRPMPart is rpmvercmp: separators only separate, ~ sorts before the end, ^ after it but before anything else.
func compareRPMPart(a, b string) int {
	if a == b {
		return 0
	}
	for a != "" || b != "" {
		a, b = skipSeparators(a), skipSeparators(b)
		if c, done, skip := compareRPMMarks(a, b); done {
			return c
		} else if skip {
			a, b = a[1:], b[1:]
			continue
		}
		if a == "" || b == "" {
			break
		}
		var c int
		if c, a, b = compareRPMSegment(a, b); c != 0 {
			return c
		}
	}
	return sign(len(a) - len(b))
}

// compareRPMMarks handles ~ and ^ at the start; skip asks to drop one from both.
func compareRPMMarks(a, b string) (c int, done, skip bool) {
	if at, bt := strings.HasPrefix(a, "~"), strings.HasPrefix(b, "~"); at || bt {
		switch {
		case !at:
			return 1, true, false
		case !bt:
			return -1, true, false
		}
		return 0, false, true
	}
	ac, bc := strings.HasPrefix(a, "^"), strings.HasPrefix(b, "^")
	switch {
	case !ac && !bc:
		return 0, false, false
	case a == "":
		return -1, true, false
	case b == "":
		return 1, true, false
	case !ac:
		return 1, true, false
	case !bc:
		return -1, true, false
	}
	return 0, false, true
}

// compareRPMSegment compares one run of digits or letters; a number is newer than letters.
func compareRPMSegment(a, b string) (c int, restA, restB string) {
	numeric := isDigit(a[0])
	in := isLetter
	if numeric {
		in = isDigit
	}
	x, restA := span(a, in)
	y, restB := span(b, in)
	switch {
	case y == "" && numeric:
		return 1, restA, restB
	case y == "":
		return -1, restA, restB
	case numeric:
		return compareDigits(x, y), restA, restB
	}
	return strings.Compare(x, y), restA, restB
}

func skipSeparators(s string) string {
	_, rest := span(s, func(c byte) bool { return !isDigit(c) && !isLetter(c) && c != '~' && c != '^' })
	return rest
}
