package rpm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// section is one [section] of an ini file as dnf and zypper read it.
type section struct {
	id     string
	line   int
	values map[string]string
	lines  map[string]int // of each key
}

// boolean is how they read one; absent gives the default.
func (s section) boolean(key string, fallback bool) bool {
	switch strings.ToLower(s.values[key]) {
	case "1", "yes", "true", "on":
		return true
	case "0", "no", "false", "off":
		return false
	}
	return fallback
}

// list is a value of several words, which commas or white space separate.
func (s section) list(key string) []string {
	return words(s.values[key])
}

// separates is true for what stands between two words of a value; the end of a line may have a carriage return.
func separates(r rune) bool { return r == ',' || unicode.IsSpace(r) }

func words(text string) []string { return strings.FieldsFunc(text, separates) }

// parseINI reads sections; a value goes on in the lines that begin with white space.
func parseINI(content string) []section {
	var all []section
	key := ""
	for i, line := range strings.Split(content, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case strings.HasPrefix(line, "[") && strings.Contains(line, "]"):
			all = append(all, section{id: line[1:strings.Index(line, "]")], line: i + 1, values: map[string]string{}, lines: map[string]int{}})
			key = ""
		case len(all) == 0:
		case line[0] == ' ' || line[0] == '\t':
			if key != "" {
				all[len(all)-1].values[key] += "\n" + trimmed
			}
		default:
			name, value, ok := strings.Cut(line, "=")
			if key = strings.ToLower(strings.TrimSpace(name)); !ok {
				key = ""
				continue
			}
			all[len(all)-1].values[key], all[len(all)-1].lines[key] = strings.TrimSpace(value), i+1
		}
	}
	return all
}

// repo is one repository that the host is configured with and that is enabled.
type repo struct {
	section
	file string // as the host calls it
	uri  string // as it stands in the file, variables and all
	list bool   // the URI is that of a list of mirrors, not of the repository
}

// uris are the places that a repository names, as they stand in its file.
func (s section) uris() (uris []string, list bool) {
	if uris = s.list("baseurl"); len(uris) > 0 {
		return uris[:1], false // the others are mirrors of it
	}
	for _, key := range []string{"metalink", "mirrorlist"} {
		if uris = s.list(key); len(uris) > 0 {
			return uris[:1], true
		}
	}
	return nil, false
}

// repos reads the repository files that dnf or zypper itself would read.
func (r *RPM) repos() ([]repo, error) {
	paths, err := filepath.Glob(r.path(r.dialect.reposDir, "*.repo"))
	if err != nil {
		return nil, fmt.Errorf("listing the package sources: %w", err)
	}
	var all []repo
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a package source: %w", err)
		}
		for _, s := range parseINI(string(data)) {
			uris, list := s.uris()
			if !s.boolean("enabled", true) {
				continue
			}
			for _, uri := range uris {
				all = append(all, repo{section: s, file: r.hostPath(path), uri: uri, list: list})
			}
		}
	}
	return all, nil
}

// hostPath is a path as the host itself would call it.
func (r *RPM) hostPath(path string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(path, r.Root), "/")
}

// main is the configuration of dnf or zypper itself; empty where there is none.
func (r *RPM) main() section {
	data, err := os.ReadFile(r.path(r.dialect.mainFile))
	if err != nil {
		return section{values: map[string]string{}}
	}
	for _, s := range parseINI(string(data)) {
		if s.id == "main" {
			return s
		}
	}
	return section{values: map[string]string{}}
}

func (p repo) facts() upgrade.SourceFacts {
	return upgrade.SourceFacts{File: p.file, Line: p.line, URI: p.uri, SignedBy: strings.Join(p.section.list("gpgkey"), " ")}
}

// excludes are the patterns that keep packages of this repository from dnf.
func (s section) excludes() []string {
	return slices.Concat(s.list("exclude"), s.list("excludepkgs"))
}
