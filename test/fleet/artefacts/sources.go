package artefacts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// suiteSources collects, from the apt configuration in dir, the sources that serve the suite and its -updates and
// -security companions, written as one text mmdebstrap takes. Which host serves them is the machine's business.
func suiteSources(dir, suite string) (string, error) {
	oneLine, err := filepath.Glob(filepath.Join(dir, "sources.list.d", "*.list"))
	if err != nil {
		return "", fmt.Errorf("listing apt sources: %w", err)
	}
	deb822, err := filepath.Glob(filepath.Join(dir, "sources.list.d", "*.sources"))
	if err != nil {
		return "", fmt.Errorf("listing apt sources: %w", err)
	}
	var found []string
	for _, path := range append([]string{filepath.Join(dir, "sources.list")}, append(oneLine, deb822...)...) {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading apt sources: %w", err)
		}
		parse := parseOneLine
		if strings.HasSuffix(path, ".sources") {
			parse = parseDeb822
		}
		found = append(found, parse(string(text), suite)...)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no apt source in %s serves %s, of which the hosts are made: add one there", dir, suite)
	}
	return strings.Join(found, "\n") + "\n", nil
}

// serves tells whether name is the suite or a companion of it.
func serves(name, suite string) bool {
	return slices.Contains([]string{suite, suite + "-updates", suite + "-security", suite + "/updates"}, name)
}

// parseOneLine returns the lines `deb [options] URI SUITE COMPONENT...` that serve the suite.
func parseOneLine(text, suite string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "deb" {
			continue
		}
		if strings.HasPrefix(fields[1], "[") {
			end := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix(f, "]") })
			fields = fields[max(end, 0):]
		}
		if len(fields) >= 3 && serves(fields[2], suite) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// parseDeb822 returns one line per URI and suite of the enabled stanzas that serve the suite.
func parseDeb822(text, suite string) []string {
	var out []string
	for _, s := range stanzas(text) {
		if !slices.Contains(strings.Fields(s["Types"]), "deb") || strings.EqualFold(s["Enabled"], "no") {
			continue
		}
		options := ""
		if key := s["Signed-By"]; filepath.IsAbs(key) {
			options = "[signed-by=" + key + "] "
		}
		for _, uri := range strings.Fields(s["URIs"]) {
			for _, name := range strings.Fields(s["Suites"]) {
				if serves(name, suite) {
					out = append(out, strings.TrimSpace("deb "+options+uri+" "+name+" "+s["Components"]))
				}
			}
		}
	}
	return out
}

// stanzas parses the format of Debian control files: fields, continued by indented lines, in paragraphs.
func stanzas(text string) []map[string]string {
	var all []map[string]string
	current, last := map[string]string{}, ""
	for _, line := range append(strings.Split(text, "\n"), "") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			if len(current) > 0 {
				all = append(all, current)
			}
			current, last = map[string]string{}, ""
		case line[0] == ' ' || line[0] == '\t':
			current[last] += "\n" + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			last = name
			current[name] = strings.TrimSpace(value)
		}
	}
	return all
}
