package upgrade

import (
	"regexp"
	"slices"
	"strings"
)

// IndexesOf sorts the answer to a request by repository.
func IndexesOf(request CandidateRequest, candidates []Candidate) []IndexFacts {
	indexes := make([]IndexFacts, 0, len(request.Sources))
	for _, source := range request.Sources {
		index := IndexFacts{URI: source.URI, Suites: source.Suites, Components: source.Components, Packages: request.Packages}
		for _, c := range candidates {
			if sameURI(c.Source, source.URI) {
				index.Candidates = append(index.Candidates, c)
			}
		}
		indexes = append(indexes, index)
	}
	return indexes
}

// Offered answers a request from the indexes in the facts. Sources of which they do
// not know every package that is asked for are returned too: what those offer is unknown,
// and so is what is offered without a digest, since nothing else says which file it is.
func (f *Facts) Offered(request CandidateRequest) (candidates []Candidate, unknown []string) {
	for _, source := range request.Sources {
		index := f.index(source, request.Packages)
		if index == nil {
			unknown = append(unknown, source.URI)
			continue
		}
		whole := true
		for _, c := range index.Candidates {
			switch {
			case !slices.Contains(request.Packages, c.Name):
			case !IsDigest(c.SHA256):
				whole = false
			default:
				c.Source = source.URI
				candidates = append(candidates, c)
			}
		}
		if !whole {
			unknown = append(unknown, source.URI)
		}
	}
	return candidates, unknown
}

func (f *Facts) index(source CandidateSource, packages []string) *IndexFacts {
	for i := range f.Packages.Indexes {
		index := &f.Packages.Indexes[i]
		same := sameURI(index.URI, source.URI) && sameSuites(index.Suites, source.Suites) && slices.Equal(index.Components, source.Components)
		if same && !slices.ContainsFunc(packages, func(name string) bool { return !slices.Contains(index.Packages, name) }) {
			return index
		}
	}
	return nil
}

// digestShape is a SHA-256 sum as indexes write it.
var digestShape = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// IsDigest says that a text is a SHA-256 sum, so that it names exactly one file.
func IsDigest(text string) bool { return digestShape.MatchString(text) }

func sameURI(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }
