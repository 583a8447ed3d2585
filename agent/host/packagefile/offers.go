package packagefile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// MaxRemembered bounds the memory: a host has a handful of sources, one more for each minor.
const MaxRemembered = 64

// offer is what a repository was seen to offer, of the packages it was asked for. The
// host's own lists do not know a repository that a plan has just switched to, until
// somebody refreshes them; Refit does, since it has planned with it.
type offer struct {
	URI      string   `json:"uri"`
	Packages []string `json:"packages"`
}

// Offers is the file in which is kept what repositories were seen to offer.
type Offers string

// Remembered maps repositories, without the slash at the end, to what they were seen
// to offer. It is a hint: one that cannot be read counts as none.
func (o Offers) Remembered(ctx context.Context) map[string][]string {
	offers, err := o.read()
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("What repositories were seen to offer is not known", "reason", err.Error())
	}
	byURI := map[string][]string{}
	for _, seen := range offers {
		byURI[seen.URI] = seen.Packages
	}
	return byURI
}

func (o Offers) read() ([]offer, error) {
	data, err := os.ReadFile(string(o))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what repositories offer: %w", err)
	}
	var offers []offer
	if err := json.Unmarshal(data, &offers); err != nil {
		return nil, fmt.Errorf("reading %s: %w", string(o), err)
	}
	return offers, nil
}

// Remember keeps what the repositories of a request offered, the newest first.
func (o Offers) Remember(sources []upgrade.CandidateSource, found []upgrade.Candidate) error {
	old, _ := o.read() // damaged: begun anew
	var offers []offer
	for _, s := range sources {
		seen := offer{URI: strings.TrimSuffix(s.URI, "/")}
		for _, c := range found {
			if strings.TrimSuffix(c.Source, "/") == seen.URI {
				seen.Packages = append(seen.Packages, c.Name)
			}
		}
		at := slices.IndexFunc(old, func(earlier offer) bool { return earlier.URI == seen.URI })
		if at >= 0 { // it may have been asked for other packages then
			seen.Packages = append(seen.Packages, old[at].Packages...)
			old = slices.Delete(old, at, at+1)
		}
		slices.Sort(seen.Packages)
		if seen.Packages = slices.Compact(seen.Packages); len(seen.Packages) > 0 {
			offers = append(offers, seen)
		}
	}
	offers = append(offers, old...)
	data, err := json.Marshal(offers[:min(len(offers), MaxRemembered)])
	if err != nil {
		return fmt.Errorf("remembering what repositories offer: %w", err)
	}
	return files.WriteAtomic(string(o), append(data, '\n'), 0o600)
}
