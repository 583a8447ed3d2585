package apt

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// aptHelper is not in the PATH.
const aptHelper = "/usr/lib/apt/apt-helper"

// maxIndex bounds one decompressed index; the largest public ones have about 60 MB.
const maxIndex = 256 << 20

// index is one Packages file that apt has fetched and verified.
type index struct {
	source string // file:entry of the source that it belongs to
	base   string // URI to which file names are relative
	path   string
}

// indexes lists the package indexes that apt has, under its configuration plus options.
func (a *Apt) indexes(ctx context.Context, options ...string) ([]index, error) {
	args := append(slices.Clone(options), "indextargets", "--format", "$(SOURCESENTRY)\t$(REPO_URI)\t$(FILENAME)", "Created-By: Packages")
	result, err := a.run(ctx, queryTimeout, a.apt("apt-get", args...))
	if err != nil {
		return nil, fmt.Errorf("listing the package indexes: %w", err)
	}
	return parseIndexes(result.Stdout), nil
}

func parseIndexes(output string) []index {
	var found []index
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) == 3 {
			found = append(found, index{source: fields[0], base: fields[1], path: fields[2]})
		}
	}
	return found
}

// candidatesIn reads the stanzas of the named packages, for this architecture, from an index.
func (a *Apt) candidatesIn(ctx context.Context, ix index, arch string, names []string) ([]upgrade.Candidate, error) {
	reader, err := a.open(ctx, ix.path)
	if err != nil {
		return nil, err
	}
	defer reader.Close() //nolint:errcheck // only read from
	var found []upgrade.Candidate
	err = stanzas(reader, func(s stanza) {
		if !slices.Contains(names, s["package"]) || (s["architecture"] != arch && s["architecture"] != "all") {
			return
		}
		if c, ok := s.candidate(ix.base); ok {
			found = append(found, c)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the package index %s: %w", ix.path, err)
	}
	return found, nil
}

// open reads an index whatever it is compressed with.
func (a *Apt) open(ctx context.Context, path string) (io.ReadCloser, error) {
	if filepath.Ext(path) == "" || strings.HasSuffix(path, "_Packages") {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("opening a package index: %w", err)
		}
		return f, nil
	}
	result, err := a.Runner.Run(ctx, command.Command{Argv: []string{aptHelper, "cat-file", path}, Timeout: queryTimeout, Limit: maxIndex})
	if err != nil {
		return nil, fmt.Errorf("decompressing the package index %s: %w", path, err)
	}
	return io.NopCloser(strings.NewReader(result.Stdout)), nil
}

// stanza is one paragraph of a control file, by lower-case field name.
type stanza map[string]string

// indexFields are the ones that are kept; descriptions would only take room.
var indexFields = []string{"package", "version", "architecture", "filename", "size", "installed-size", "sha256", "depends", "pre-depends"}

// stanzas calls visit for each paragraph.
func stanzas(reader io.Reader, visit func(stanza)) error {
	scanner := bufio.NewScanner(reader)
	scanner.Buffer(make([]byte, 64<<10), 4<<20)
	current, field := stanza{}, ""
	for scanner.Scan() {
		line := scanner.Text()
		switch {
		case line == "":
			if len(current) > 0 {
				visit(current)
			}
			current, field = stanza{}, ""
		case line[0] == ' ' || line[0] == '\t':
			if field != "" {
				current[field] += " " + strings.TrimSpace(line)
			}
		default:
			name, value, _ := strings.Cut(line, ":")
			field = strings.ToLower(name)
			if !slices.Contains(indexFields, field) {
				field = ""
				continue
			}
			current[field] = strings.TrimSpace(value)
		}
	}
	if len(current) > 0 {
		visit(current)
	}
	return scanner.Err() //nolint:wrapcheck // wrapped by the caller, who knows the file
}

// candidate is false for an entry without a digest: what cannot be verified is no candidate.
func (s stanza) candidate(base string) (upgrade.Candidate, bool) {
	size, err := strconv.ParseInt(s["size"], 10, 64)
	digest := strings.ToLower(s["sha256"])
	if err != nil || size < 0 || !packagefile.Digest.MatchString(digest) || s["filename"] == "" {
		return upgrade.Candidate{}, false
	}
	installed, _ := strconv.ParseInt(s["installed-size"], 10, 64) // KiB; optional
	if installed < 0 || installed > math.MaxInt64>>10 {
		installed = 0 // no size that a package could have says nothing
	}
	return upgrade.Candidate{
		Name: s["package"], Version: s["version"], Source: base, Path: s["filename"],
		SHA256: digest, Size: size, InstalledSize: installed << 10, Depends: s.depends(),
	}, true
}

func (s stanza) depends() []string {
	var all []string
	for _, list := range []string{s["pre-depends"], s["depends"]} {
		for dependency := range strings.SplitSeq(list, ",") {
			if dependency = strings.TrimSpace(dependency); dependency != "" {
				all = append(all, dependency)
			}
		}
	}
	return all
}
