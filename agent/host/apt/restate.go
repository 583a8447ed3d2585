package apt

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// restate makes the entries of a URI that say what the change was made for say what it
// wants: suites, components and keyring. Entries of the URI with other suites are others.
func (a *Apt) restate(path, content string, change upgrade.SourceChange) (string, error) {
	want, err := a.wordsOf(change)
	if err != nil {
		return "", err
	}
	r := restating{uri: change.To, was: *change.Was, want: want}
	if strings.HasSuffix(path, ".sources") {
		content, err = r.stanzas(content)
	} else {
		content, err = r.lines(content)
	}
	if err == nil && !r.found {
		err = refuse("SourceMissing", "package source file %s has no entry of %s with suites %s; somebody changed it since the plan was made", change.File, change.To, strings.Join(r.was.Suites, " "))
	}
	return content, err
}

// writtenKey is what a source file may say of its keys: the path of a keyring, or a fingerprint.
var writtenKey = regexp.MustCompile(`^(/[0-9A-Za-z._+~/-]+|[0-9A-Fa-f]{16,64}!?)$`)

// wordsOf are the words of a change as they stand in a file. A path or a fingerprint was in
// one before and is written as it was, so that undoing a change needs nothing of the host.
func (a *Apt) wordsOf(change upgrade.SourceChange) (upgrade.SourceWords, error) {
	want := upgrade.SourceWords{Suites: change.Suites, Components: change.Components}
	for _, word := range append(slices.Clone(want.Suites), want.Components...) {
		if !validWord.MatchString(word) {
			return want, refuse("SourceInvalid", "package source %s: %q is not a suite or a component", change.Name, word)
		}
	}
	var keys []string
	for _, key := range keyrings(change.SignedBy) {
		if !writtenKey.MatchString(key) {
			path, err := a.keyring(key)
			if err != nil {
				return want, err
			}
			key = a.hostPath(filepath.Clean(path))
		}
		keys = append(keys, key)
	}
	want.SignedBy = strings.Join(keys, " ")
	return want, nil
}

// restating is one change on its way through a file.
type restating struct {
	uri       string
	was, want upgrade.SourceWords
	found     bool
}

// is says whether an entry says some words; its keyring may be any.
func is(suites, components []string, words upgrade.SourceWords) bool {
	return slices.Equal(suites, words.Suites) && slices.Equal(components, words.Components)
}

// lines restates the lines of a .list file, and leaves all other lines and what stands behind a # as they are.
func (r *restating) lines(content string) (string, error) {
	all := strings.Split(content, "\n")
	for i, line := range all {
		_, words, ok := oneLine(line)
		if !ok || !sameURI(words[0], r.uri) || !is(words[1:2], words[2:], r.was) && !is(words[1:2], words[2:], r.want) {
			continue
		}
		if len(r.want.Suites) != 1 {
			return "", refuse("SourceInvalid", "a line of a .list file has one suite and spec.packageSources names %s: make the source a .sources file", strings.Join(r.want.Suites, " "))
		}
		r.found = true
		all[i] = r.line(line, words[0])
	}
	return strings.Join(all, "\n"), nil
}

func (r *restating) line(line, uri string) string {
	body, comment, commented := strings.Cut(line, "#")
	end := strings.TrimRight(body, " \t\r")
	tail := body[len(end):]
	if commented {
		tail += "#" + comment
	}
	at := strings.Index(end, "deb") + len("deb")
	var options []string
	if inner, found := strings.CutPrefix(strings.TrimSpace(end[at:]), "["); found {
		inner, _, _ = strings.Cut(inner, "]")
		options = slices.DeleteFunc(strings.Fields(inner), func(option string) bool {
			return strings.HasPrefix(strings.ToLower(option), "signed-by=")
		})
	}
	if r.want.SignedBy != "" {
		options = append(options, "signed-by="+strings.Join(keyrings(r.want.SignedBy), ","))
	}
	words := []string{end[:at]}
	if len(options) > 0 {
		words = append(words, "["+strings.Join(options, " ")+"]")
	}
	words = append(append(append(words, uri), r.want.Suites...), r.want.Components...)
	return strings.Join(words, " ") + tail
}

func keyrings(signedBy string) []string {
	return strings.FieldsFunc(signedBy, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

// stanzas restates the stanzas of a .sources file.
func (r *restating) stanzas(content string) (string, error) {
	lines := strings.Split(content, "\n")
	var out []string
	for start := 0; start < len(lines); {
		end := start
		for end < len(lines) && strings.TrimSpace(lines[end]) != "" {
			end++
		}
		stanza, err := r.stanza(lines[start:end])
		if err != nil {
			return "", err
		}
		out = append(out, stanza...)
		if end < len(lines) {
			out = append(out, lines[end])
		}
		start = end + 1
	}
	return strings.Join(out, "\n"), nil
}

func (r *restating) stanza(lines []string) ([]string, error) {
	parsed := deb822(strings.Join(lines, "\n"))
	if len(parsed) != 1 {
		return lines, nil
	}
	s := parsed[0]
	uris := strings.Fields(s.value("uris"))
	suites, components := strings.Fields(s.value("suites")), strings.Fields(s.value("components"))
	switch {
	case !slices.ContainsFunc(uris, func(uri string) bool { return sameURI(uri, r.uri) }),
		!is(suites, components, r.was) && !is(suites, components, r.want):
		return lines, nil
	case len(uris) > 1:
		return nil, refuse("SourceInvalid", "%s shares its stanza with other URIs, and spec.packageSources is about it alone: give it a stanza of its own", r.uri)
	}
	r.found = true
	return r.fields(lines, strings.Contains(s.value("signed-by"), "BEGIN PGP")), nil
}

// fields replaces the three fields where they stand, and adds those that are not there. A
// key that stands in the file itself stays: nothing could bring it back.
func (r *restating) fields(lines []string, ownKey bool) []string {
	values := map[string]string{
		"suites": strings.Join(r.want.Suites, " "), "components": strings.Join(r.want.Components, " "), "signed-by": strings.Join(keyrings(r.want.SignedBy), " "),
	}
	names := map[string]string{"suites": "Suites", "components": "Components", "signed-by": "Signed-By"}
	if ownKey {
		delete(names, "signed-by")
		delete(values, "signed-by")
	}
	var out []string
	dropping := false
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			if dropping {
				continue
			}
		default:
			field, _, _ := strings.Cut(line, ":")
			field = strings.ToLower(strings.TrimSpace(field))
			if _, dropping = names[field]; dropping {
				if values[field] != "" {
					out = append(out, names[field]+": "+values[field])
				}
				delete(values, field)
				continue
			}
		}
		out = append(out, line)
	}
	for _, field := range []string{"suites", "components", "signed-by"} {
		if values[field] != "" {
			out = append(out, names[field]+": "+values[field])
		}
	}
	return out
}
