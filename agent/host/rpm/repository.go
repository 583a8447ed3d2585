package rpm

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/packagefile"
)

const (
	maxRepomd  = 4 << 20
	maxMirrors = 3
	// metadataFor is how long the index of a repository is kept that nobody asked for.
	metadataFor = 14 * 24 * time.Hour
)

// repository is one to look into, as the host or a plan names it.
type repository struct {
	name, uri, signedBy string
	// kind of index to load; primary when unset.
	kind string
	// host is the section of the host that it stands in; nil for one that only a plan names.
	host *repo
}

// index is the verified index of a repository, on this host.
type index struct{ path, base string }

// load fetches what a repository offers and verifies it: the signature over repomd.xml,
// and by its digest the index. An index that is here already is not fetched again.
func (r *RPM) load(ctx context.Context, from repository, maxSize int64) (index, error) {
	a, err := r.access(from.uri, from.host)
	if err != nil {
		return index{}, err
	}
	if from.host != nil {
		if !from.host.boolean("gpgcheck", r.main().boolean("gpgcheck", true)) {
			return index{}, refuse("RepoSignature", "package source %s in %s has gpgcheck=0: packages that are not signed are never used; sign them, and turn the check on", from.host.id, from.host.file)
		}
	}
	rings, err := r.keys(ctx, from.signedBy)
	if err != nil {
		return index{}, fmt.Errorf("package source %s: %w", from.name, err)
	}
	bases, err := r.bases(ctx, a, from)
	if err != nil {
		return index{}, err
	}
	for i, base := range bases {
		var ix index
		if ix, err = r.loadFrom(ctx, a, from, base, rings, maxSize); err == nil || i+1 == len(bases) || ctx.Err() != nil {
			return ix, err
		}
	}
	return index{}, err
}

func (r *RPM) loadFrom(ctx context.Context, a access, from repository, base string, rings [][]byte, maxSize int64) (index, error) {
	data, err := r.read(ctx, a, base+"repodata/repomd.xml", maxRepomd)
	if err != nil {
		return index{}, err
	}
	signature, err := r.read(ctx, a, base+"repodata/repomd.xml.asc", maxRepomd)
	switch {
	case err == nil:
		err = signed(base+"repodata/repomd.xml", data, signature, rings)
	case errors.Is(err, fs.ErrNotExist) && from.host != nil && !from.host.boolean("repo_gpgcheck", r.main().boolean("repo_gpgcheck", r.dialect.signedMetadata)):
		// The host's own choice: its metadata is not signed, and every package has to be.
		err = nil
	case errors.Is(err, fs.ErrNotExist):
		err = refuse("RepoSignature", "the metadata of %s is not signed: unsigned repositories are never used", base)
	}
	if err != nil {
		return index{}, err
	}
	var m repomd
	if err := xml.Unmarshal(data, &m); err != nil {
		return index{}, wait("RepoUnreachable", "reading %srepodata/repomd.xml: %v", base, err)
	}
	href, sha256, size, err := m.index(cmp.Or(from.kind, "primary"))
	if err != nil {
		return index{}, fmt.Errorf("package source %s: %w", from.name, err)
	}
	if size > maxSize {
		return index{}, wait("RepoUnreachable", "the index of %s has %d bytes; it is not fetched for this", base, size)
	}
	if err := packagefile.Room(r.state(), size); err != nil {
		return index{}, err
	}
	target := r.state("rpm/metadata", fileOfIndex(sha256, href))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return index{}, fmt.Errorf("making the private package state: %w", err)
	}
	if err := r.fetch(ctx, a, base+href, sha256, target); err != nil {
		return index{}, err
	}
	now := time.Now()
	_ = os.Chtimes(target, now, now) // used: not among those that are pruned
	return index{path: target, base: base}, r.trust(base, from)
}

// fileOfIndex is how a fetched index is called; its ending says how it is compressed.
func fileOfIndex(sha256, href string) string {
	return sha256 + "-" + strings.Trim(path.Base(href), "/")
}

var metalinkURL = regexp.MustCompile(`<url[^>]*>\s*(https?://[^<\s]+)/repodata/repomd\.xml\s*</url>`)

// bases are where a repository is, each with a slash at the end: one, or some mirrors of a list.
func (r *RPM) bases(ctx context.Context, a access, from repository) ([]string, error) {
	uri := r.expand(ctx, from.uri)
	if from.host == nil || !from.host.list {
		return []string{from.host.place(uri)}, nil
	}
	data, err := r.read(ctx, a, uri, maxRepomd)
	if err != nil {
		return nil, err
	}
	var bases []string
	for _, mirror := range mirrors(string(data)) {
		bases = append(bases, from.host.place(r.expand(ctx, mirror)))
	}
	if len(bases) == 0 {
		return nil, refuse("RepoUnavailable", "%s names no mirror of package source %s", uri, from.name)
	}
	return bases, nil
}

// place is where a repository is by a URI of it, with a slash at the end and without what
// only says how it is reached. zypper has repositories that are a directory of their place.
func (p *repo) place(uri string) string {
	uri, _, _ = strings.Cut(uri, "?")
	uri = strings.TrimSuffix(uri, "/") + "/"
	if p == nil {
		return uri
	}
	if path := strings.Trim(p.values["path"], "/"); path != "" {
		uri += path + "/"
	}
	return uri
}

// mirrors are the first places of a list of mirrors or of a metalink.
func mirrors(text string) []string {
	var found []string
	if links := metalinkURL.FindAllStringSubmatch(text, maxMirrors); len(links) > 0 {
		for _, m := range links {
			found = append(found, m[1])
		}
		return found
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(found) < maxMirrors && checkURI(withoutVariables(line)) == nil {
			found = append(found, line)
		}
	}
	return found
}
