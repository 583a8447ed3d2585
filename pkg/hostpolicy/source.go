package hostpolicy

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// SourceWish is a source as a spec or a plan names it, next to what the host has.
type SourceWish struct {
	Name, URI, SignedBy string
	// Configured says that the host has a source of that URI, the minor of a hop aside.
	Configured bool
	// New says that the host has no source of that name, nor of that URI.
	New bool
	// KeyKnown says that the keyring is one that the host's own source of that name or URI has, or
	// one for a source of the host that names none: that makes it narrower.
	KeyKnown bool
}

// Source says whether a source may be used.
func (p Policy) Source(w SourceWish) *Violation {
	what := "package source " + quoted(w.Name) + " at " + quoted(hidden(w.URI))
	switch {
	case !w.Configured && !p.allowsURI(w.URI):
		return &Violation{"sources.allow", what + ", which is not configured on this host,", "add its URI or host"}
	case w.New && !p.Sources.New:
		return &Violation{"sources.new", what + ", which would be a new one,", "set it to true, with the URI in sources.allow"}
	case w.SignedBy != "" && !w.KeyKnown && !slices.Contains(p.Sources.Keyrings, w.SignedBy):
		return &Violation{"sources.keyrings", "keyring " + quoted(w.SignedBy) + " of " + what, "add it"}
	}
	return nil
}

// hidden leaves the password out of a URI that should not have one.
func hidden(text string) string {
	uri, err := url.Parse(text)
	if err != nil || uri.User == nil {
		return text
	}
	return uri.Redacted()
}

func (p Policy) allowsURI(text string) bool {
	uri, err := url.Parse(text)
	if err != nil || !plain(uri) {
		return false
	}
	return slices.ContainsFunc(p.Sources.Allow, func(entry string) bool { return covers(entry, uri) })
}

// plain refuses what an allowed beginning could be left by: steps back, and words that are not the place.
func plain(uri *url.URL) bool {
	place := strings.TrimSuffix(uri.Path, "/")
	return (uri.Scheme == "http" || uri.Scheme == "https") && uri.Host != "" && uri.User == nil && uri.RawQuery == "" && !uri.ForceQuery && uri.Fragment == "" &&
		(place == "" || path.Clean(place) == place) && !strings.ContainsAny(uri.Path, "\\\x00\r\n")
}

// covers says that a URI is at a host, or below a place, that an entry allows.
func covers(entry string, uri *url.URL) bool {
	if !strings.Contains(entry, "://") {
		return strings.EqualFold(entry, uri.Host)
	}
	allowed, err := url.Parse(entry)
	if err != nil || allowed.Scheme != uri.Scheme || !strings.EqualFold(allowed.Host, uri.Host) {
		return false
	}
	below := strings.TrimSuffix(allowed.Path, "/")
	return uri.Path == below || strings.HasPrefix(uri.Path, below+"/")
}
