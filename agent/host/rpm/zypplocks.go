package rpm

import (
	"regexp"
	"slices"
	"strings"
)

// zyppLocks is the file of libzypp: queries in paragraphs, each of which locks what it finds.
type zyppLocks struct{}

func (zyppLocks) file() string { return "/etc/zypp/locks" }

// zyppLock is one query, with the lines that it stands in.
type zyppLock struct {
	text     string
	names    []string // of packages, or patterns
	match    string
	packages bool // it is about packages
	limited  bool // to some versions, or to a repository
}

// queries splits the file at empty lines.
func queries(content string) []zyppLock {
	var all []zyppLock
	q := zyppLock{packages: true}
	flush := func() {
		if q.text != "" {
			all = append(all, q)
		}
		q = zyppLock{packages: true}
	}
	for line := range strings.Lines(content) {
		trimmed := strings.TrimSpace(line)
		q.text += line
		if trimmed == "" {
			flush()
			continue
		}
		key, value, ok := strings.Cut(trimmed, ":")
		if !ok || trimmed[0] == '#' {
			continue
		}
		value = strings.TrimSpace(value)
		switch {
		case namesPackages(key):
			if value != "" {
				q.names = append(q.names, value)
			}
		case key == "match_type":
			q.match = value
		case key == "type" || key == "kind":
			q.packages = value == "package"
		case key == "version" || key == "edition" || key == "repo":
			q.limited = true
		}
	}
	flush()
	return all
}

// named says that a query finds the package of that name alone, and all of it.
func (q zyppLock) named(name string) bool {
	return !q.limited && (q.match == "exact" || q.match == "glob") && slices.Contains(q.names, name)
}

// pattern is a name of a query as holds have it: one that begins with a slash is a regular expression.
func (q zyppLock) pattern(name string) string {
	switch q.match {
	case "exact", "glob":
		return name
	case "regex":
		return "/" + name
	}
	return "/(?i)" + regexp.QuoteMeta(name) // a part of the name, as libzypp has it by default
}

func (zyppLocks) names(content string) []string {
	var names []string
	for _, q := range queries(content) {
		if q.packages {
			for _, name := range q.names {
				names = append(names, q.pattern(name))
			}
		}
	}
	return names
}

// without takes off what is about exactly these packages; a query about others too stays for those.
func (zyppLocks) without(content string, names []string) string {
	var b strings.Builder
	for _, q := range queries(content) {
		ours := func(name string) bool { return slices.Contains(names, name) && q.named(name) }
		switch {
		case !q.packages || !slices.ContainsFunc(q.names, ours):
			b.WriteString(q.text)
			continue
		case !slices.ContainsFunc(q.names, func(name string) bool { return !ours(name) }):
			continue
		}
		for line := range strings.Lines(q.text) {
			if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); !namesPackages(key) || !ours(strings.TrimSpace(value)) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

func namesPackages(key string) bool { return key == "solvable_name" || key == "query_string" }

// with locks packages as zypper addlock does, whatever their version; what some lock of the owner's holds already is left to it.
func (l zyppLocks) with(content string, locked []header) string {
	for _, h := range locked {
		if matches(l.names(content), h.name) {
			continue
		}
		if content != "" && !strings.HasSuffix(content, "\n") {
			content += "\n"
		}
		if content != "" && !strings.HasSuffix(content, "\n\n") {
			content += "\n"
		}
		content += "type: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: " + h.name + "\n\n"
	}
	return content
}
