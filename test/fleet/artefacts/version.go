package artefacts

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// exactVersion matches what names one release, like v1.37.2 or v3.7.0-rc.0.
var exactVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

// minorOf turns v1.37.2 into v1.37.
func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return parts[0] + "." + parts[1]
}

func newest(versions []string) string { return slices.MaxFunc(versions, compareVersions) }

func compareVersions(a, b string) int {
	return slices.CompareFunc(numbers(a), numbers(b), cmp.Compare[int])
}

func numbers(version string) []int {
	core, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	var out []int
	for _, part := range strings.Split(core, ".") {
		n, _ := strconv.Atoi(part)
		out = append(out, n)
	}
	return out
}
