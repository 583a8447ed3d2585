package rpm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// maxPrimary bounds one index once it is decompressed; the largest public ones have about 200 MB.
const maxPrimary = 1 << 30

// repomd is the one signed file of a repository: it names the others with their digests.
type repomd struct {
	Data []struct {
		Type     string `xml:"type,attr"`
		Checksum struct {
			Type  string `xml:"type,attr"`
			Value string `xml:",chardata"`
		} `xml:"checksum"`
		Location struct {
			Href string `xml:"href,attr"`
		} `xml:"location"`
		Size int64 `xml:"size"`
	} `xml:"data"`
}

// index is where an index of a kind is, and its digest.
func (m repomd) index(kind string) (href, sha256 string, size int64, err error) {
	for _, d := range m.Data {
		if d.Type != kind {
			continue
		}
		sha256 = strings.TrimSpace(d.Checksum.Value)
		if d.Checksum.Type != "sha256" || !packagefile.Digest.MatchString(sha256) {
			return "", "", 0, refuse("DigestMissing", "the repository's index has a digest of type %q; without SHA-256 nothing is installed", d.Checksum.Type)
		}
		if href := d.Location.Href; href == "" || strings.Contains(href, "..") || strings.Contains(href, "://") || checkURI("http://repository/"+href) != nil {
			return "", "", 0, refuse("SourceInvalid", "the repository's index is at %q, which is not a place in the repository", href)
		}
		if d.Size < 0 {
			return "", "", 0, refuse("SourceInvalid", "the repository's index has a size of %d bytes", d.Size)
		}
		return d.Location.Href, sha256, d.Size, nil
	}
	if kind != "primary" {
		return "", "", 0, fmt.Errorf("the repository has no %s: %w", kind, fs.ErrNotExist)
	}
	return "", "", 0, refuse("SourceInvalid", "the repository has no index of packages")
}

// pkg is one package of an index.
type pkg struct {
	Name     string `xml:"name"`
	Arch     string `xml:"arch"`
	Version  evr    `xml:"version"`
	Checksum struct {
		Type  string `xml:"type,attr"`
		Value string `xml:",chardata"`
	} `xml:"checksum"`
	Size struct {
		Package   int64 `xml:"package,attr"`
		Installed int64 `xml:"installed,attr"`
	} `xml:"size"`
	Location struct {
		Href string `xml:"href,attr"`
		Base string `xml:"base,attr"`
	} `xml:"location"`
	Requires []requirement `xml:"format>requires>entry"`
}

type evr struct {
	Epoch string `xml:"epoch,attr"`
	Ver   string `xml:"ver,attr"`
	Rel   string `xml:"rel,attr"`
}

// String is the version as rpm tells it of what is installed: an epoch of 0 is none.
func (v evr) String() string {
	text := v.Ver
	if v.Rel != "" {
		text += "-" + v.Rel
	}
	if v.Epoch != "" && v.Epoch != "0" {
		text = v.Epoch + ":" + text
	}
	return text
}

type requirement struct {
	Name  string `xml:"name,attr"`
	Flags string `xml:"flags,attr"`
	evr
}

// relations of an index, as the planner has them of every package manager.
var relations = map[string]string{"EQ": "=", "LT": "<<", "LE": "<=", "GT": ">>", "GE": ">="}

func (r requirement) String() string {
	relation := relations[r.Flags]
	if relation == "" || r.Ver == "" {
		return r.Name
	}
	return r.Name + " (" + relation + " " + r.evr.String() + ")"
}

// candidate is false for an entry without a digest, of another architecture or beside
// the repository: what cannot be verified and installed is no candidate.
func (p pkg) candidate(base string) (upgrade.Candidate, bool) {
	digest := strings.ToLower(strings.TrimSpace(p.Checksum.Value))
	if p.Checksum.Type != "sha256" || !packagefile.Digest.MatchString(digest) || p.Size.Package < 0 || p.Location.Href == "" || p.Location.Base != "" {
		return upgrade.Candidate{}, false
	}
	if p.Arch != "noarch" && p.Arch != basearch() {
		return upgrade.Candidate{}, false
	}
	c := upgrade.Candidate{
		Name: p.Name, Version: p.Version.String(), Source: base, Path: p.Location.Href,
		SHA256: digest, Size: p.Size.Package, InstalledSize: max(0, p.Size.Installed),
	}
	for _, r := range p.Requires {
		if text := r.String(); !slices.Contains(c.Depends, text) && !strings.HasPrefix(text, "rpmlib(") {
			c.Depends = append(c.Depends, text)
		}
	}
	return c, true
}

// candidatesIn reads the named packages, for this architecture, from an index file.
func candidatesIn(path, base string, names []string) ([]upgrade.Candidate, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a package index: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	reader, err := decompress(path, f)
	if err != nil {
		return nil, err
	}
	defer reader.Close() //nolint:errcheck // only read from
	var found []upgrade.Candidate
	err = packagesIn(io.LimitReader(reader, maxPrimary), func(p pkg) {
		if !slices.Contains(names, p.Name) {
			return
		}
		if c, ok := p.candidate(base); ok {
			found = append(found, c)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the package index %s: %w", path, err)
	}
	return found, nil
}

// namesIn are those of the names that an index has packages of. It looks at names only,
// since facts are asked for often and the index of a distribution has tens of megabytes.
func namesIn(path string, names []string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a package index: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	plain, err := decompress(path, f)
	if err != nil {
		return nil, err
	}
	defer plain.Close() //nolint:errcheck // only read from
	reader := bufio.NewReaderSize(io.LimitReader(plain, maxPrimary), 64<<10)
	var found []string
	for {
		// What does not fit is a long text, and no name.
		token, err := reader.ReadSlice('<')
		if rest, ok := bytes.CutPrefix(token, []byte("name>")); ok {
			if name := string(bytes.TrimSuffix(rest, []byte("<"))); slices.Contains(names, name) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("reading the package index %s: %w", path, err)
		}
	}
}

// packagesIn calls visit for each package.
func packagesIn(reader io.Reader, visit func(pkg)) error { return elementsIn(reader, "package", visit) }

// elementsIn calls visit for each element of a name; the file is never in memory as a whole.
func elementsIn[T any](reader io.Reader, name string, visit func(T)) error {
	decoder := xml.NewDecoder(reader)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err //nolint:wrapcheck // wrapped by the caller, who knows the file
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != name {
			continue
		}
		var element T
		if err := decoder.DecodeElement(&element, &start); err != nil {
			return err //nolint:wrapcheck // wrapped by the caller, who knows the file
		}
		visit(element)
	}
}

// decompress reads an index whatever it is compressed with.
func decompress(path string, f io.Reader) (io.ReadCloser, error) {
	switch {
	case strings.HasSuffix(path, ".gz"):
		reader, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("decompressing the package index %s: %w", path, err)
		}
		return reader, nil
	case strings.HasSuffix(path, ".zst"):
		reader, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(maxPrimary))
		if err != nil {
			return nil, fmt.Errorf("decompressing the package index %s: %w", path, err)
		}
		return reader.IOReadCloser(), nil
	case strings.HasSuffix(path, ".xml"):
		return io.NopCloser(f), nil
	}
	return nil, refuse("SourceInvalid", "the package index %s is compressed in a way that is not known: gz, zst and none are", path)
}
