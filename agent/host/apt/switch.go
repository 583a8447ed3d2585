package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Switch points the entries of one source file from one URI to another and keeps
// everything else of the file: options, comments, other entries. What Was says besides
// becomes what the change says. Without From the
// file is made, without To it is removed; From and To swapped undo it. A file that is
// switched already is left alone, so a repeated step does nothing.
func (a *Apt) Switch(_ context.Context, change upgrade.SourceChange) error {
	path, err := a.sourcePath(change.File)
	if err != nil {
		return err
	}
	switch {
	case change.From == "":
		return a.addSource(path, change)
	case change.To == "":
		return files.Remove(path)
	case strings.ContainsFunc(change.To, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return refuse("SourceInvalid", "package source URI %q is not a URI", change.To) // it would be more than one word of the file
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("SourceMissing", "package source file %s is gone; the source %s is expected there", change.File, change.From)
	}
	if err != nil {
		return fmt.Errorf("reading the package source: %w", err)
	}
	content, err := a.switched(path, string(data), change)
	if err != nil || content == string(data) {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("looking at the package source: %w", err)
	}
	return files.WriteAtomic(path, []byte(content), info.Mode().Perm())
}

// switched is the file's content after the change.
func (a *Apt) switched(path, data string, change upgrade.SourceChange) (string, error) {
	content, replaced, present := replaceURI(path, data, change.From, change.To)
	switch {
	case !replaced && !present:
		return "", refuse("SourceMissing", "package source file %s names neither %s nor %s; somebody changed it since the plan was made", change.File, change.From, change.To)
	case change.Was == nil && !replaced:
		return data, nil
	case change.Was == nil:
		return content, nil
	}
	return a.restate(path, content, change)
}

// sourcePath keeps a plan from writing anything but source files of apt.
func (a *Apt) sourcePath(file string) (string, error) {
	clean := filepath.Clean("/" + file)
	inDir := filepath.Dir(clean) == "/etc/apt/sources.list.d" && (strings.HasSuffix(clean, ".list") || strings.HasSuffix(clean, ".sources"))
	if clean != file || (!inDir && clean != "/etc/apt/sources.list") {
		return "", refuse("SourceInvalid", "package source file %q: want /etc/apt/sources.list or a .list or .sources file in /etc/apt/sources.list.d", file)
	}
	return a.path(clean), nil
}

func (a *Apt) addSource(path string, change upgrade.SourceChange) error {
	content, err := a.sourceText(upgrade.CandidateSource{
		Name: change.Name, URI: change.To, Suites: change.Suites, Components: change.Components, SignedBy: change.SignedBy,
	})
	if err != nil {
		return err
	}
	if !strings.HasSuffix(path, ".sources") {
		return refuse("SourceInvalid", "package source file %s: a new source is written as a .sources file", change.File)
	}
	return files.WriteAtomic(path, []byte(content), 0o644)
}

// replaceURI replaces whole URIs only, and only where a URI stands; it says whether
// it replaced one, and whether the new one was there before.
func replaceURI(path, content, from, to string) (out string, replaced, present bool) {
	lines := strings.Split(content, "\n")
	part := uriOfLine
	if strings.HasSuffix(path, ".sources") {
		part = (&stanzaURIs{}).part
	}
	for i, line := range lines {
		start, end := part(line)
		text, hit, has := replaceWord(line[start:end], from, to)
		lines[i] = line[:start] + text + line[end:]
		replaced, present = replaced || hit, present || has
	}
	return strings.Join(lines, "\n"), replaced, present
}

// uriOfLine is where the URI of a one-line source stands; nothing in any other line.
func uriOfLine(line string) (start, end int) {
	_, words, ok := oneLine(line)
	if !ok {
		return 0, 0
	}
	start = strings.Index(line, "deb") + len("deb")
	if strings.HasPrefix(strings.TrimSpace(line[start:]), "[") {
		start += strings.IndexByte(line[start:], ']') + 1
	}
	start += strings.Index(line[start:], words[0])
	return start, start + len(words[0])
}

// stanzaURIs follows the URIs field of a .sources file, which may continue over lines.
type stanzaURIs struct{ inside bool }

// part is what of a line are URIs. It reads lines the way deb822 does.
func (s *stanzaURIs) part(line string) (start, end int) {
	switch {
	case strings.HasPrefix(line, "#"):
		return 0, 0
	case strings.TrimSpace(line) == "":
		s.inside = false
	case line[0] != ' ' && line[0] != '\t':
		name, _, _ := strings.Cut(line, ":")
		s.inside = strings.EqualFold(strings.TrimSpace(name), "uris")
		start = min(len(name)+1, len(line))
	}
	if !s.inside {
		return 0, 0
	}
	return start, len(line)
}

// replaceWord leaves all white space as it is.
func replaceWord(line, from, to string) (out string, replaced, present bool) {
	var b strings.Builder
	for line != "" {
		space := len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
		b.WriteString(line[:space])
		line = line[space:]
		end := strings.IndexFunc(line, unicode.IsSpace)
		if end < 0 {
			end = len(line)
		}
		word := line[:end]
		switch {
		case word == "": // only white space is left
		case sameURI(word, from):
			word, replaced = to, true
		case sameURI(word, to):
			present = true
		}
		b.WriteString(word)
		line = line[end:]
	}
	return b.String(), replaced, present
}

// sameURI takes a slash at the end for nothing, as apt does.
func sameURI(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}
