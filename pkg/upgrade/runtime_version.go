package upgrade

import (
	"regexp"
	"strings"
)

// Runtime is a container runtime and its version, as far as a text says them.
type Runtime struct {
	Name    string
	Version Version
}

// runtimeToken is a word that is a version, with whatever a distribution appends.
var runtimeToken = regexp.MustCompile(`^v?[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}([-+~.].*)?$`)

// ParseRuntime reads a container runtime's version in all the shapes in which
// runtimes, packages and Nodes write it: containerd://1.7.20, v1.7.2, 1.6.20~ds1,
// 1.8.1.fc21, "containerd containerd.io v1.7.28 b98a3aa". It reports false when
// there is none; the version is then Unknown.
func ParseRuntime(text string) (Runtime, bool) {
	name, rest, found := strings.Cut(strings.TrimSpace(text), "://")
	if !found {
		name, rest = "", strings.TrimSpace(text)
	}
	words := strings.Fields(rest)
	if name == "" && len(words) > 1 && !runtimeToken.MatchString(words[0]) {
		name = words[0]
	}
	for _, word := range words {
		if !runtimeToken.MatchString(word) {
			continue
		}
		if v, ok := parseRelease(text, strings.TrimRight(word, ",;")); ok {
			return Runtime{Name: name, Version: v}, true
		}
	}
	return Runtime{Name: name, Version: Version{raw: text}}, false
}

// SameRuntime says whether two texts name one runtime version, whatever the packager appends.
func SameRuntime(a, b string) bool {
	x, _ := ParseRuntime(a)
	y, _ := ParseRuntime(b)
	return x.Version.Equal(y.Version)
}
