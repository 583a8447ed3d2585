package rpm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Switch points the repositories of one file from one URI to another and keeps everything
// else of the file: excludes, comments, other repositories, and keys unless the change says
// what they were and are to be. Without From the file is
// made, without To it is removed; From and To swapped undo it. A file that is switched
// already is left alone, so a repeated step does nothing.
func (r *RPM) Switch(_ context.Context, change upgrade.SourceChange) error {
	path, err := r.sourcePath(change.File)
	if err != nil {
		return err
	}
	switch {
	case change.From == "":
		return r.addSource(path, change)
	case change.To == "":
		return files.Remove(path)
	}
	if err := checkURI(withoutVariables(change.To)); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("SourceMissing", "package source file %s is gone; the source %s is expected there", change.File, change.From)
	}
	if err != nil {
		return fmt.Errorf("reading the package source: %w", err)
	}
	content, replaced, present := replaceURI(string(data), change.From, change.To)
	switch {
	case replaced, present:
	default:
		return refuse("SourceMissing", "package source file %s names neither %s nor %s; somebody changed it since the plan was made", change.File, change.From, change.To)
	}
	if change.Was != nil {
		if content, err = r.restate(content, change); err != nil {
			return err
		}
	}
	if content == string(data) {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("looking at the package source: %w", err)
	}
	return files.WriteAtomic(path, []byte(content), info.Mode().Perm())
}

func withoutVariables(uri string) string { return variable.ReplaceAllString(uri, "x") }

// sourcePath keeps a plan from writing anything but repository files.
func (r *RPM) sourcePath(file string) (string, error) {
	clean := filepath.Clean("/" + file)
	if clean != file || filepath.Dir(clean) != r.dialect.reposDir || !strings.HasSuffix(clean, ".repo") {
		return "", refuse("SourceInvalid", "package source file %q: want a .repo file in %s", file, r.dialect.reposDir)
	}
	return r.path(clean), nil
}

// addSource writes a repository of its own keyring: packages and metadata are checked by it.
func (r *RPM) addSource(path string, change upgrade.SourceChange) error {
	if err := checkURI(withoutVariables(change.To)); err != nil {
		return err
	}
	if !validKeyring.MatchString(change.Name) {
		return refuse("SourceInvalid", "package source %q: want a name of letters, digits, '.', '-' and '_'", change.Name)
	}
	text := fmt.Sprintf("[%s]\nname=%s\nbaseurl=%s\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\n", change.Name, change.Name, change.To)
	keys, err := r.writtenKeys(change.SignedBy)
	if err != nil {
		return err
	}
	if keys != "" {
		text += "gpgkey=" + keys + "\n"
	}
	return files.WriteAtomic(path, []byte(text), 0o644)
}

// replaceURI replaces whole URIs only, and only where a repository's place stands; it
// says whether it replaced one, and whether the new one was there before.
func replaceURI(content, from, to string) (out string, replaced, present bool) {
	lines := strings.Split(content, "\n")
	inURIs := false // of a value, which may continue over lines
	for i, line := range lines {
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		start := 0
		if line[0] != ' ' && line[0] != '\t' {
			key, _, found := strings.Cut(line, "=")
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "baseurl", "mirrorlist", "metalink":
				inURIs, start = found, len(key)+1
			default:
				inURIs = false
			}
		}
		if !inURIs {
			continue
		}
		rest, hit, has := replaceWord(line[start:], from, to)
		lines[i] = line[:start] + rest
		replaced, present = replaced || hit, present || has
	}
	return strings.Join(lines, "\n"), replaced, present
}

// replaceWord leaves all white space and commas as they are.
func replaceWord(text, from, to string) (out string, replaced, present bool) {
	var b strings.Builder
	for text != "" {
		space := len(text) - len(strings.TrimLeftFunc(text, separates))
		b.WriteString(text[:space])
		text = text[space:]
		end := strings.IndexFunc(text, separates)
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		switch {
		case sameURI(word, from):
			word, replaced = to, replaced || word != ""
		case sameURI(word, to):
			present = present || word != ""
		}
		b.WriteString(word)
		text = text[end:]
	}
	return b.String(), replaced, present
}
