package upgrade

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// CandidateRequest asks which versions of some packages some repositories offer.
type CandidateRequest struct {
	Sources  []CandidateSource `json:"sources"`
	Packages []string          `json:"packages"`
	// Security asks for something else: what the host's own security sources have newer than
	// what is installed, with what that needs, apart from Packages. Sources are then left out.
	Security bool `json:"security,omitempty"`
}

// CandidateSource is a repository to look into, at the minor of the hop; the host's own lists are left alone.
type CandidateSource struct {
	Name       string   `json:"name"`
	URI        string   `json:"uri"`
	Suites     []string `json:"suites,omitempty"`
	Components []string `json:"components,omitempty"`
	// SignedBy is the keyring: the bare name of one on the host when it comes from
	// spec, or what the host's own source file says, often a path.
	SignedBy string `json:"signedBy,omitempty"`
	// Unlikely says that nothing speaks for the source: it is not in spec, and by what is
	// known of it it has none of the packages. It is looked into for what is nowhere else.
	Unlikely bool `json:"unlikely,omitempty"`
}

// Likely is the request without its unlikely sources; false where that leaves all, or none.
func (r CandidateRequest) Likely() (CandidateRequest, bool) {
	all := len(r.Sources)
	r.Sources = slices.DeleteFunc(slices.Clone(r.Sources), func(s CandidateSource) bool { return s.Unlikely })
	return r, len(r.Sources) > 0 && len(r.Sources) < all
}

// Names of package sources that are published per minor: that of kubelet and kubeadm, and
// those of CRI-O and etcd, whose minors are their own.
const (
	SourceKubernetes = "kubernetes"
	SourceCRIO       = "cri-o"
	SourceEtcd       = "etcd"
)

// sourcePackages are the packages that a source of such a name offers.
var sourcePackages = map[string][]string{SourceKubernetes: kubernetesPackages, SourceCRIO: {packageCRIO}, SourceEtcd: etcdPackages}

// minorPlaceholder stands for the minor of the hop in a source's URI.
const minorPlaceholder = "{minor}"

// minorSegment is the path segment that names the minor of a per-minor repository.
var minorSegment = regexp.MustCompile(`^v1\.[0-9]+$`)

// Sources says which repositories must be looked into for a hop, for which
// packages, and how the host's sources change for it. A source in spec wins; else
// the host's own source of a package is followed to the target's minor when its URI
// names one, and used as it is when not. No URI is ever guessed.
func Sources(facts Facts, target v1alpha1.Target, spec v1alpha1.MachineSpec) (CandidateRequest, []SourceChange, error) {
	packages := packagesWanted(facts, target, spec)
	if len(packages) == 0 {
		return CandidateRequest{}, nil, nil
	}
	s := &sourceSet{facts: facts}
	for _, src := range facts.Packages.Sources {
		s.now = append(s.now, hostSource{facts: src, uri: src.URI})
	}
	if err := s.applySpec(spec.PackageSources, func(name string) string { return sourceMinor(facts, target, name) }); err != nil {
		return CandidateRequest{}, nil, err
	}
	for _, l := range lanes(facts, target) {
		if err := s.follow(l); err != nil {
			return CandidateRequest{}, nil, err
		}
	}
	return CandidateRequest{Sources: s.request(sought(packages, target, spec)), Packages: packages}, s.changes(), nil
}

// hostSource is a source as it is and as it is to be.
type hostSource struct {
	facts SourceFacts
	uri   string // after the hop
	spec  *v1alpha1.PackageSource
}

type sourceSet struct {
	facts Facts
	now   []hostSource
}

// lane is a set of packages that is published in one repository per minor.
type lane struct {
	source    string // its name in spec.packageSources
	packages  []string
	installed Version // now on the host
	target    Version
}

func lanes(facts Facts, target v1alpha1.Target) []lane {
	var all []lane
	if v, ok := kubernetesTarget(target); ok {
		all = append(all, lane{source: SourceKubernetes, packages: kubernetesPackages, installed: installedKubernetes(facts), target: v})
	}
	if r := target.ContainerRuntime; r != nil && r.Name == v1alpha1.RuntimeCRIO && r.Version != "" {
		v, _ := ParseRelease(string(r.Version))
		all = append(all, lane{source: SourceCRIO, packages: sourcePackages[SourceCRIO], installed: installedCRIO(facts), target: v})
	}
	return all
}

// kubernetesTarget is the version of the hop's Kubernetes packages; the control plane decides when both move.
func kubernetesTarget(target v1alpha1.Target) (Version, bool) {
	return ParseKubernetes(firstOf(string(target.ControlPlane), string(target.Kubelet)))
}

func installedKubernetes(facts Facts) Version {
	for _, p := range facts.Packages.Installed {
		if p.Name == packageKubeadm || p.Name == packageKubelet {
			return packageUpstream(p.Version)
		}
	}
	return Version{}
}

func installedCRIO(facts Facts) Version {
	installed, _ := ParseRuntime(firstOf(runtimeText(facts.Runtime)...))
	return installed.Version
}

// sourceMinor is the minor of a source of some name on a hop.
func sourceMinor(facts Facts, target v1alpha1.Target, name string) string {
	if name == SourceEtcd {
		v, _ := ParseRelease(firstOf(string(target.Etcd), facts.Versions().Etcd))
		return v.Minor()
	}
	if name == SourceCRIO {
		if r := target.ContainerRuntime; r != nil && r.Name == v1alpha1.RuntimeCRIO {
			if v, ok := ParseRelease(string(r.Version)); ok {
				return v.Minor()
			}
		}
		if facts.Runtime != nil && facts.Runtime.Name == string(v1alpha1.RuntimeCRIO) {
			return installedCRIO(facts).Minor()
		}
	}
	if v, ok := kubernetesTarget(target); ok {
		return v.Minor()
	}
	return installedKubernetes(facts).Minor()
}

// applySpec puts the sources of spec in the place of the host's sources of the same name.
func (s *sourceSet) applySpec(sources []v1alpha1.PackageSource, minorOf func(name string) string) error {
	for i := range sources {
		src := &sources[i]
		minor := minorOf(src.Name)
		if strings.Contains(src.URI, minorPlaceholder) && minor == v1alpha1.Unknown {
			return refuse(ReasonVersionUnknown, "spec.packageSources %q has %s in its URI, but neither the target nor this host has a version to fill it in: write the minor out", src.Name, minorPlaceholder)
		}
		uri := strings.ReplaceAll(src.URI, minorPlaceholder, minor)
		if at := s.find(src.Name); at >= 0 {
			s.now[at].uri, s.now[at].spec = uri, src
			continue
		}
		s.now = append(s.now, hostSource{uri: uri, spec: src})
	}
	return nil
}

// find returns the host's source that a name in spec stands for: the file of that
// name, or for "kubernetes" and "cri-o" the only source that offers its packages.
func (s *sourceSet) find(name string) int {
	var named, offering []int
	for i, h := range s.now {
		if h.spec != nil || h.facts.File == "" {
			continue
		}
		base := path.Base(h.facts.File)
		if strings.TrimSuffix(base, path.Ext(base)) == name {
			named = append(named, i)
		}
		if offers(h.facts, sourcePackages[name]) {
			offering = append(offering, i)
		}
	}
	switch {
	case len(named) > 0:
		return named[0]
	case len(offering) == 1:
		return offering[0]
	}
	return -1
}

func offers(src SourceFacts, packages []string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return slices.Contains(src.Provides, p) })
}

// follow points the source of a lane to the target's minor.
func (s *sourceSet) follow(l lane) error {
	if !l.target.Known() || s.inSpec(l) {
		return nil
	}
	var offering, perMinor []int
	for i, h := range s.now {
		if !offers(h.facts, l.packages) {
			continue
		}
		offering = append(offering, i)
		switch uriMinor(h.uri) {
		case l.target.Minor():
			return nil // the host already has the target's repository
		case "":
		default:
			perMinor = append(perMinor, i)
		}
	}
	switch {
	case len(offering) == 0 && l.installed.SameMinor(l.target):
		return nil // no other repository is needed; all that are configured are looked into
	case len(offering) == 0:
		return wait(ReasonSourceUnknown, "no source on this host is known to offer %s, so the repository of %s %s cannot be found: refresh the host's package lists (apt-get update, dnf makecache), or name the repository in spec.packageSources as %q with %s in its URI",
			strings.Join(l.packages, " or "), l.source, l.target.Minor(), l.source, minorPlaceholder)
	case len(perMinor) == 0:
		return nil // a mirror with no minor in its URI is used as it is
	}
	return s.rewrite(l, perMinor)
}

// inSpec says whether spec names the source of a lane.
func (s *sourceSet) inSpec(l lane) bool {
	return slices.ContainsFunc(s.now, func(h hostSource) bool {
		if h.spec == nil {
			return false
		}
		return offers(h.facts, l.packages) || h.spec.Name == l.source
	})
}

// rewrite replaces the minor in the one source that the host's packages come from.
func (s *sourceSet) rewrite(l lane, perMinor []int) error {
	if !s.alike(perMinor) {
		perMinor = slices.DeleteFunc(slices.Clone(perMinor), func(i int) bool { return uriMinor(s.now[i].uri) != l.installed.Minor() })
	}
	if len(perMinor) == 0 || !s.alike(perMinor) || len(minorsOf(s.now[perMinor[0]].uri)) != 1 {
		return refuse(ReasonSourceAmbiguous, "several sources on this host offer %s, or one names several minors, and none is the obvious one to point to %s: leave one of them, or name the repository in spec.packageSources as %q",
			strings.Join(l.packages, ", "), l.target.Minor(), l.source)
	}
	for _, i := range perMinor {
		h := &s.now[i]
		segments := strings.Split(h.uri, "/")
		segments[minorsOf(h.uri)[0]] = l.target.Minor()
		h.uri = strings.Join(segments, "/")
	}
	return nil
}

// alike says that entries are of one repository, which may well be written down twice.
func (s *sourceSet) alike(entries []int) bool {
	return !slices.ContainsFunc(entries, func(i int) bool { return !sameURI(s.now[i].uri, s.now[entries[0]].uri) })
}

// uriMinor is the first minor in a URI, or "".
func uriMinor(uri string) string {
	if at := minorsOf(uri); len(at) > 0 {
		return strings.Split(uri, "/")[at[0]]
	}
	return ""
}

// minorsOf are the positions of the path segments of a URI that are a minor.
func minorsOf(uri string) []int {
	var at []int
	for i, segment := range strings.Split(uri, "/") {
		if i > 0 && minorSegment.MatchString(segment) {
			at = append(at, i)
		}
	}
	return at
}

// request lists the sources to look into, once each, in the host's order and then
// those that spec adds. One whose index on the host offers none of the packages is left
// out, unless some package is in no index that is known: then it could be anywhere.
func (s *sourceSet) request(asked []string) []CandidateSource {
	everywhere := slices.ContainsFunc(asked, func(name string) bool {
		return !slices.ContainsFunc(s.now, func(h hostSource) bool { return slices.Contains(h.facts.Provides, name) })
	})
	var out []CandidateSource
	for _, h := range s.now {
		c := s.candidate(h)
		c.Unlikely = h.spec == nil && !offers(h.facts, asked)
		if at := slices.IndexFunc(out, c.sameRepository); at >= 0 {
			out[at].Unlikely = out[at].Unlikely && c.Unlikely
		} else if everywhere || !c.Unlikely {
			out = append(out, c)
		}
	}
	return out
}

// sought are the packages that repositories are chosen for. Helpers do not count, unless
// spec.os names them: they come from where the package is that needs them, and a
// distribution's whole index is not worth fetching for one that is there already.
func sought(packages []string, target v1alpha1.Target, spec v1alpha1.MachineSpec) []string {
	named := osNames(target, spec)
	return slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(Helpers, name) && !slices.Contains(named, name)
	})
}

func (c CandidateSource) sameRepository(o CandidateSource) bool {
	return c.URI == o.URI && sameSuites(c.Suites, o.Suites) && slices.Equal(c.Components, o.Components)
}

func (s *sourceSet) candidate(h hostSource) CandidateSource {
	c := CandidateSource{Name: h.name(), URI: h.uri, Suites: h.facts.Suites, Components: h.facts.Components, SignedBy: h.facts.SignedBy}
	if h.spec == nil {
		return c
	}
	c.SignedBy = h.spec.SignedBy
	if !hasSuites(s.facts.Packages.Manager) {
		c.Suites, c.Components = nil, nil
		return c
	}
	if len(h.spec.Suites) > 0 {
		c.Suites, c.Components = words(h.spec.Suites), words(h.spec.Components)
	}
	if len(c.Suites) == 0 {
		c.Suites = []string{flatSuite}
	}
	return c
}

// flatSuite is that of a repository of apt that has none.
const flatSuite = "/"

// hasSuites says whether the repositories of a package manager have any: rpm's are flat, whatever a spec says.
func hasSuites(manager string) bool { return manager != "dnf" && manager != "zypper" }

// sameSuites takes no suite for the flat one.
func sameSuites(a, b []string) bool {
	flat := func(suites []string) bool { return len(suites) == 0 || len(suites) == 1 && suites[0] == flatSuite }
	return flat(a) && flat(b) || slices.Equal(a, b)
}

func (h hostSource) name() string {
	if h.spec != nil {
		return h.spec.Name
	}
	base := path.Base(h.facts.File)
	return strings.TrimSuffix(base, path.Ext(base))
}

// changes lists the sources of the host that are not what the hop needs.
func (s *sourceSet) changes() []SourceChange {
	var out []SourceChange
	for _, h := range s.now {
		c := s.candidate(h)
		restated := h.restated(c)
		if h.uri == h.facts.URI && !restated {
			continue
		}
		change := SourceChange{Name: c.Name, File: h.facts.File, From: h.facts.URI, To: h.uri}
		if h.spec != nil {
			change.Suites, change.Components, change.SignedBy = c.Suites, c.Components, c.SignedBy
		}
		if restated {
			change.Was = &SourceWords{Suites: h.facts.Suites, Components: h.facts.Components, SignedBy: h.facts.SignedBy}
		}
		if change.File == "" {
			change.File = newSourceFile(s.facts.Packages.Manager, c.Name)
		}
		if slices.ContainsFunc(out, change.covered) {
			continue // the file is searched for the URI, however often it has it
		}
		out = append(out, change)
	}
	return out
}

// covered says that another change of the same file does this one too.
func (c SourceChange) covered(by SourceChange) bool {
	return c.Was == nil && by.File == c.File && by.From == c.From && by.To == c.To
}

// restated says that spec wants a source of the host to say something else than it does, its URI apart.
func (h hostSource) restated(c CandidateSource) bool {
	same := sameSuites(c.Suites, h.facts.Suites) && slices.Equal(c.Components, h.facts.Components) && isKeyring(h.facts.SignedBy, c.SignedBy)
	return h.spec != nil && h.facts.File != "" && !same
}

// isKeyring says that a source file names the keyring of a bare name and no other, whatever
// its directory and ending. rpm's own keys begin with a prefix that a spec may leave out. A
// key that is to be fetched is no keyring on the host.
func isKeyring(inFile, name string) bool {
	keys := strings.FieldsFunc(inFile, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	if len(keys) != 1 || strings.Contains(keys[0], "://") && !strings.HasPrefix(keys[0], "file://") {
		return false
	}
	base := path.Base(keys[0])
	bare := strings.TrimSuffix(base, path.Ext(base))
	prefixed := "RPM-GPG-KEY-" + name
	return base == name || bare == name || base == prefixed || bare == prefixed
}

// newSourceFile is where a source goes that the host does not have yet.
func newSourceFile(manager, name string) string {
	switch manager {
	case "dnf":
		return "/etc/yum.repos.d/" + name + ".repo"
	case "zypper":
		return "/etc/zypp/repos.d/" + name + ".repo"
	}
	return "/etc/apt/sources.list.d/" + name + ".sources"
}

func words(in []v1alpha1.SourceWord) []string {
	out := make([]string, 0, len(in))
	for _, w := range in {
		out = append(out, string(w))
	}
	return out
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
