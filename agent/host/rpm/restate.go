package rpm

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// restate makes the repositories of a URI name the keys that a change wants. Suites and
// components are apt's; nothing in a repository file says them.
func (r *RPM) restate(content string, change upgrade.SourceChange) (string, error) {
	keys, err := r.writtenKeys(change.SignedBy)
	if err != nil {
		return "", err
	}
	lines := strings.Split(content, "\n")
	end, found := len(lines), false
	for _, s := range slices.Backward(parseINI(content)) {
		uris, _ := s.uris()
		if slices.ContainsFunc(uris, func(uri string) bool { return sameURI(uri, change.To) }) {
			found = true
			if strings.Join(s.list("gpgkey"), " ") != keys {
				lines = slices.Concat(lines[:s.line], withKeys(lines[s.line:end], keys), lines[end:])
			}
		}
		end = s.line - 1
	}
	if !found {
		return "", refuse("SourceMissing", "package source file %s has no repository at %s; somebody changed it since the plan was made", change.File, change.To)
	}
	return strings.Join(lines, "\n"), nil
}

// withKeys puts the keys where those of before stand, or behind the last line that says something.
func withKeys(lines []string, keys string) []string {
	line := "gpgkey=" + keys
	var out []string
	written, dropping, last := keys == "", false, 0
	for _, text := range lines {
		trimmed := strings.TrimSpace(text)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case text[0] == ' ' || text[0] == '\t':
			if dropping {
				continue
			}
		default:
			key, _, ok := strings.Cut(text, "=")
			if dropping = ok && strings.EqualFold(strings.TrimSpace(key), "gpgkey"); dropping {
				if written {
					continue
				}
				text, written = line, true
			}
		}
		if out = append(out, text); trimmed != "" {
			last = len(out)
		}
	}
	if !written {
		out = slices.Insert(out, last, line)
	}
	return out
}

// writtenKey is what a repository file says of a key, which is not the bare name of one.
var writtenKey = regexp.MustCompile(`^((https?|ftp|file)://|/)[!-~]+$`)

// writtenKeys are the keys of a change as they stand in a file. A URL or a path was in
// one before and is written as it was, so that undoing a change needs nothing of the host.
func (r *RPM) writtenKeys(signedBy string) (string, error) {
	var urls []string
	for _, key := range words(signedBy) {
		if !writtenKey.MatchString(key) {
			file, err := r.keyFile(key)
			if err != nil {
				return "", err
			}
			key = "file://" + file
		}
		urls = append(urls, key)
	}
	return strings.Join(urls, " "), nil
}
