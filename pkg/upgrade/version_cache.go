package upgrade

import (
	"sync"
	"sync/atomic"
)

// parsed remembers what texts mean. A fleet has few versions, and asks for each of them
// once for every machine and peer. It is bounded, since whoever writes a Machine chooses
// the texts; what does not fit is parsed each time.
type parsed struct {
	versions sync.Map // text → parsedVersion
	size     atomic.Int32
}

type parsedVersion struct {
	version Version
	ok      bool
}

const (
	mostParsed    = 4096
	longestParsed = 64
)

var kubernetesVersions parsed

func (p *parsed) of(text string, parse func(string) (Version, bool)) (Version, bool) {
	if found, ok := p.versions.Load(text); ok {
		known, _ := found.(parsedVersion)
		return known.version, known.ok
	}
	version, ok := parse(text)
	if len(text) <= longestParsed && p.size.Add(1) <= mostParsed {
		p.versions.Store(text, parsedVersion{version, ok})
	}
	return version, ok
}
