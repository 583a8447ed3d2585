package rpm

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

const lockListFile = "/etc/dnf/plugins/versionlock.list"

// lockListPath is where the plugin of dnf 4 keeps its locks.
func (r *RPM) lockListPath() string {
	data, err := os.ReadFile(r.path("etc/dnf/plugins/versionlock.conf"))
	if err != nil {
		return lockListFile
	}
	for _, s := range parseINI(string(data)) {
		if file := s.values["locklist"]; s.id == "main" && strings.HasPrefix(file, "/") {
			return file
		}
	}
	return lockListFile
}

// listLocks is the file of dnf 4's plugin: a pattern for a name, or for a name and its version, a line.
type listLocks struct{ path string }

func (l listLocks) file() string { return l.path }

// lockedVersion is name-[epoch:]version-release[.arch], the version perhaps a pattern.
var lockedVersion = regexp.MustCompile(`^(?:\d+:)?(.+?)-(?:[0-9*?]+:)?[0-9*?][^-]*(?:-[^-]+)?$`)

// lockedName is the name in a line; "" for comments, and for lines that only exclude one version.
func lockedName(line string) string {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == '!' {
		return ""
	}
	if m := lockedVersion.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return line
}

func (l listLocks) names(content string) []string {
	var names []string
	for line := range strings.Lines(content) {
		if name := lockedName(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (l listLocks) without(content string, names []string) string {
	var b strings.Builder
	for line := range strings.Lines(content) {
		if name := lockedName(line); name == "" || !slices.Contains(names, name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (l listLocks) with(content string, locked []header) string {
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	for _, h := range locked {
		content += h.name + "-" + withEpoch(h.version) + ".*\n"
	}
	return content
}

// withEpoch is a version as dnf's locks have it, with an epoch of 0 written out.
func withEpoch(version string) string {
	if strings.Contains(version, ":") {
		return version
	}
	return "0:" + version
}
