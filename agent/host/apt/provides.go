package apt

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

// maxRemembered bounds the memory: a host has a handful of sources, one more for each minor.
const maxRemembered = 64

// offer is what a repository was seen to offer, of the packages it was asked for. The
// host's own lists do not know a repository that a plan has just switched to, until
// somebody runs apt-get update; Refit does, since it has planned with it.
type offer struct {
	URI      string   `json:"uri"`
	Packages []string `json:"packages"`
}

func (a *Apt) offersPath() string { return a.state("apt/offers.json") }

// remembered maps repositories, without the slash at the end, to what they were seen
// to offer. It is a hint: one that cannot be read counts as none.
func (a *Apt) remembered(ctx context.Context) map[string][]string {
	offers, err := a.readOffers()
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("What repositories were seen to offer is not known", "reason", err.Error())
	}
	byURI := map[string][]string{}
	for _, o := range offers {
		byURI[o.URI] = o.Packages
	}
	return byURI
}

func (a *Apt) readOffers() ([]offer, error) {
	data, err := os.ReadFile(a.offersPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what repositories offer: %w", err)
	}
	var offers []offer
	if err := json.Unmarshal(data, &offers); err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.offersPath(), err)
	}
	return offers, nil
}

// remember keeps what the repositories of a request offered, the newest first.
func (a *Apt) remember(sources []upgrade.CandidateSource, found []upgrade.Candidate) error {
	old, _ := a.readOffers() // damaged: begun anew
	var offers []offer
	for _, s := range sources {
		o := offer{URI: strings.TrimSuffix(s.URI, "/")}
		for _, c := range found {
			if sameURI(c.Source, s.URI) {
				o.Packages = append(o.Packages, c.Name)
			}
		}
		at := slices.IndexFunc(old, func(earlier offer) bool { return earlier.URI == o.URI })
		if at >= 0 { // it may have been asked for other packages then
			o.Packages = append(o.Packages, old[at].Packages...)
			old = slices.Delete(old, at, at+1)
		}
		slices.Sort(o.Packages)
		if o.Packages = slices.Compact(o.Packages); len(o.Packages) > 0 {
			offers = append(offers, o)
		}
	}
	offers = append(offers, old...)
	data, err := json.Marshal(offers[:min(len(offers), maxRemembered)])
	if err != nil {
		return fmt.Errorf("remembering what repositories offer: %w", err)
	}
	return files.WriteAtomic(a.offersPath(), append(data, '\n'), 0o600)
}
