package rpm

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/files"
)

// maxTrusted bounds the memory: a host has a handful of sources, one more for each minor.
const maxTrusted = 64

// origin remembers of which source a repository is: a plan names only the URI of a
// file, and its signature is to be checked by the keys of that source, no others.
type origin struct {
	Base     string `json:"base"`
	SignedBy string `json:"signedBy,omitempty"`
	// Source is the URI as it stands in a file of the host, or in a spec.
	Source string `json:"source"`
}

func (r *RPM) originsPath() string { return r.state("rpm/origins.json") }

// origins that cannot be read count as none: the keys that rpm trusts decide then.
func (r *RPM) origins() []origin {
	var all []origin
	data, err := os.ReadFile(r.originsPath())
	if err != nil || json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

func (r *RPM) trust(base string, from repository) error {
	all := slices.DeleteFunc(r.origins(), func(o origin) bool { return o.Base == base })
	all = append([]origin{{Base: base, SignedBy: from.signedBy, Source: from.uri}}, all...)
	data, err := json.Marshal(all[:min(len(all), maxTrusted)])
	if err != nil {
		return err //nolint:wrapcheck // cannot happen: texts only
	}
	return files.WriteAtomic(r.originsPath(), append(data, '\n'), 0o600)
}

// originOf finds the source that a file's URI belongs to, and how it is reached.
func (r *RPM) originOf(uri string) (origin, access, error) {
	var best origin
	for _, o := range r.origins() {
		if strings.HasPrefix(uri, o.Base) && len(o.Base) > len(best.Base) {
			best = o
		}
	}
	repos, err := r.repos()
	if err != nil {
		return best, access{}, err
	}
	a, err := r.access(best.Source, hostOf(repos, best.Source))
	return best, a, err
}

// hostOf is the host's repository with that URI; of one that only differs in the minor of its last hop: see sameButMinor.
func hostOf(repos []repo, uri string) *repo {
	for i := range repos {
		if uri != "" && strings.TrimSuffix(repos[i].uri, "/") == strings.TrimSuffix(uri, "/") {
			return &repos[i]
		}
	}
	for i := range repos {
		if uri != "" && !repos[i].list && sameButMinor(repos[i].uri, uri) {
			return &repos[i]
		}
	}
	return nil
}

// sameButMinor says that two URIs name the repository of two minors: before the switch
// the host's file has the old one, and its credentials and checks are those of the new one.
func sameButMinor(a, b string) bool {
	x, y := strings.Split(strings.TrimSuffix(a, "/"), "/"), strings.Split(strings.TrimSuffix(b, "/"), "/")
	if len(x) != len(y) {
		return false
	}
	minors := 0
	for i := range x {
		switch {
		case x[i] == y[i]:
		case strings.HasPrefix(x[i], "v1.") && strings.HasPrefix(y[i], "v1."):
			minors++
		default:
			return false
		}
	}
	return minors == 1
}
