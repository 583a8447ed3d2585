package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// entry is one configured source, as apt numbers it.
type entry struct {
	upgrade.SourceFacts
	key string // file:line of a one-line entry, file:n of the n-th stanza
}

// Sources are the configured sources, each with those of the named packages that its
// index on the host offers, or that it offered Refit where the host has no index of
// it. Nothing is fetched.
func (a *Apt) Sources(ctx context.Context, packages []string) ([]upgrade.SourceFacts, error) {
	entries, err := a.entries()
	if err != nil {
		return nil, err
	}
	provides, err := a.provided(ctx, packages)
	if err != nil {
		return nil, err
	}
	remembered := a.offers().Remembered(ctx)
	facts := make([]upgrade.SourceFacts, 0, len(entries))
	for _, e := range entries {
		var indexed bool
		if e.Provides, indexed = provides[e.key]; !indexed {
			e.Provides = only(remembered[strings.TrimSuffix(e.URI, "/")], packages)
		}
		facts = append(facts, e.SourceFacts)
	}
	return facts, nil
}

func only(names, wanted []string) []string {
	var kept []string
	for _, name := range names {
		if slices.Contains(wanted, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// provided maps source entries to the packages that their indexes on the host offer;
// an entry without an index is not in it.
func (a *Apt) provided(ctx context.Context, packages []string) (map[string][]string, error) {
	indexes, err := a.indexes(ctx)
	if err != nil {
		return nil, err
	}
	arch, err := a.architecture(ctx)
	if err != nil {
		return nil, err
	}
	provides := map[string][]string{}
	for _, ix := range indexes {
		found, err := a.candidatesIn(ctx, ix, arch, packages)
		if err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(ix.source, strings.TrimSuffix(a.Root, "/"))
		provides[key] = slices.Clip(provides[key]) // known, even when it offers none
		for _, c := range found {
			if !slices.Contains(provides[key], c.Name) {
				provides[key] = append(provides[key], c.Name)
			}
		}
		slices.Sort(provides[key])
	}
	return provides, nil
}

// entries reads the source files that apt itself would read.
func (a *Apt) entries() ([]entry, error) {
	paths := []string{a.path("etc/apt/sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		found, err := filepath.Glob(a.path("etc/apt/sources.list.d", pattern))
		if err != nil {
			return nil, fmt.Errorf("listing the package sources: %w", err)
		}
		paths = append(paths, found...)
	}
	var entries []entry
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a package source: %w", err)
		}
		name := a.hostPath(path)
		if strings.HasSuffix(path, ".sources") {
			entries = append(entries, parseDeb822(name, string(data))...)
		} else {
			entries = append(entries, parseOneLine(name, string(data))...)
		}
	}
	return entries, nil
}

// hostPath is a path as the host itself would call it.
func (a *Apt) hostPath(path string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(path, a.Root), "/")
}

// parseOneLine reads `deb [options] uri suite component…` lines.
func parseOneLine(file, content string) []entry {
	var entries []entry
	for i, line := range strings.Split(content, "\n") {
		options, words, ok := oneLine(line)
		if !ok {
			continue
		}
		facts := upgrade.SourceFacts{
			File: file, Line: i + 1, URI: words[0], Suites: words[1:2], Components: words[2:],
			SignedBy: options["signed-by"],
		}
		entries = append(entries, entry{SourceFacts: facts, key: fmt.Sprintf("%s:%d", file, i+1)})
	}
	return entries
}

// oneLine splits a line into its options and what follows them; false when it is no source of binary packages.
func oneLine(line string) (options map[string]string, words []string, ok bool) {
	line, _, _ = strings.Cut(line, "#")
	rest, isDeb := strings.CutPrefix(strings.TrimSpace(line), "deb")
	if !isDeb || rest == "" || (rest[0] != ' ' && rest[0] != '\t' && rest[0] != '[') {
		return nil, nil, false
	}
	options, rest = map[string]string{}, strings.TrimSpace(rest)
	if inner, found := strings.CutPrefix(rest, "["); found {
		inside, after, closed := strings.Cut(inner, "]")
		if !closed {
			return nil, nil, false
		}
		for option := range strings.FieldsSeq(inside) {
			name, value, _ := strings.Cut(option, "=")
			options[strings.ToLower(name)] = value
		}
		rest = after
	}
	words = strings.Fields(rest)
	return options, words, len(words) >= 2
}

// parseDeb822 reads stanzas of a .sources file.
func parseDeb822(file, content string) []entry {
	var entries []entry
	for n, s := range deb822(content) {
		if !slices.Contains(strings.Fields(s.value("types")), "deb") || strings.EqualFold(s.value("enabled"), "no") {
			continue
		}
		for _, uri := range strings.Fields(s.value("uris")) {
			facts := upgrade.SourceFacts{
				File: file, Line: s.line, URI: uri,
				Suites: strings.Fields(s.value("suites")), Components: strings.Fields(s.value("components")),
			}
			// A key that stands in the file itself has no name to hand on.
			if key := s.value("signed-by"); !strings.Contains(key, "BEGIN PGP") {
				facts.SignedBy = key
			}
			entries = append(entries, entry{SourceFacts: facts, key: fmt.Sprintf("%s:%d", file, n+1)})
		}
	}
	return entries
}

// paragraph is one stanza of a .sources file.
type paragraph struct {
	line   int // of its first field
	fields map[string]string
}

func (p paragraph) value(field string) string { return strings.TrimSpace(p.fields[field]) }

func deb822(content string) []paragraph {
	var all []paragraph
	current, field := paragraph{fields: map[string]string{}}, ""
	flush := func() {
		if len(current.fields) > 0 {
			all = append(all, current)
		}
		current, field = paragraph{fields: map[string]string{}}, ""
	}
	for i, line := range strings.Split(content, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			if field != "" { // before any field it continues nothing
				current.fields[field] += "\n" + line
			}
		default:
			if len(current.fields) == 0 {
				current.line = i + 1
			}
			name, value, _ := strings.Cut(line, ":")
			field = strings.ToLower(strings.TrimSpace(name))
			current.fields[field] = value
		}
	}
	flush()
	return all
}
