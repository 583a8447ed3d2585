package rpm

import (
	"regexp"
	"slices"
	"strings"
)

// tomlLocks is the file of dnf 5: a table of [[packages]] with a name and conditions.
type tomlLocks struct{}

func (tomlLocks) file() string { return "/etc/dnf/versionlock.toml" }

const tomlPackage = "[[packages]]"

var tomlName = regexp.MustCompile(`(?m)^\s*name\s*=\s*["']([^"']+)["']`)

// tables splits the file before each package; what is before the first is its head.
func tables(content string) (head string, packages []string) {
	at := -1
	for i, line := range strings.SplitAfter(content, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), tomlPackage) {
			packages = append(packages, line)
			at = i
			continue
		}
		if at < 0 {
			head += line
		} else {
			packages[len(packages)-1] += line
		}
	}
	return head, packages
}

func tableName(table string) string {
	before, _, _ := strings.Cut(table, "[[packages.conditions]]")
	if m := tomlName.FindStringSubmatch(before); m != nil {
		return m[1]
	}
	return ""
}

func (tomlLocks) names(content string) []string {
	var names []string
	_, packages := tables(content)
	for _, table := range packages {
		if name := tableName(table); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (tomlLocks) without(content string, names []string) string {
	head, packages := tables(content)
	packages = slices.DeleteFunc(packages, func(table string) bool { return slices.Contains(names, tableName(table)) })
	return head + strings.Join(packages, "")
}

func (tomlLocks) with(content string, locked []header) string {
	if len(locked) == 0 {
		return content
	}
	if strings.TrimSpace(content) == "" {
		content = "version = \"1.0\"\n"
	}
	for _, h := range locked {
		content = strings.TrimRight(content, "\n") + "\n\n" + tomlPackage + "\nname = \"" + h.name + "\"\ncomment = \"held by Refit\"\n" +
			"[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"=\"\nvalue = \"" + withEpoch(h.version) + "\"\n"
	}
	return content
}
