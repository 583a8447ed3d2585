package upgrade

import (
	"cmp"
	"slices"
	"strings"
)

// ResolvePackage finds the package version that carries an upstream version, in an
// index that was read: never by putting a string together, since the revision is
// the packager's (1.28.9-1.1, 1.28.9-2.1, 3:19.03.2-3.el7). The highest revision
// wins. A full package version may be asked for too, and is then taken as it is.
func ResolvePackage(order Ordering, candidates []Candidate, name, version string) (Candidate, error) {
	return resolve(order, candidates, name, version, func(have string) bool { return carries(have, version) })
}

// carries says whether a package version is an upstream version, or exactly what was asked for.
func carries(packageVersion, wanted string) bool {
	if packageVersion == wanted {
		return true
	}
	want, known := ParseRelease(wanted)
	return known && packageUpstream(packageVersion).Equal(want)
}

// satisfies says whether an installed package is at the version that spec.os wishes
// for: exactly, or in its upstream part when the wish has neither epoch nor revision.
func satisfies(order Ordering, have, wanted string) bool {
	if wanted == "" || order(have, wanted) == 0 {
		return true
	}
	return !strings.ContainsAny(wanted, ":-") && splitRPM(have).upstream == wanted
}

// resolve takes the newest of the candidates that match.
func resolve(order Ordering, candidates []Candidate, name, wanted string, match func(version string) bool) (Candidate, error) {
	var found []Candidate
	for _, c := range candidates {
		if c.Name == name && match(c.Version) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return Candidate{}, notFound(order, candidates, name, wanted)
	}
	return newest(order, found, wanted), nil
}

// newest takes the exact version, else the highest; sources are ordered by text so that a plan is the same every time.
func newest(order Ordering, found []Candidate, wanted string) Candidate {
	return slices.MaxFunc(found, func(a, b Candidate) int {
		if exact := cmp.Compare(oneIf(a.Version == wanted), oneIf(b.Version == wanted)); exact != 0 {
			return exact
		}
		if c := order(a.Version, b.Version); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(b.Source, a.Source), strings.Compare(b.Path, a.Path), strings.Compare(b.SHA256, a.SHA256))
	})
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shownVersions bounds how many versions a message names.
const shownVersions = 5

// notFound says what was looked for, where, and what there is instead.
func notFound(order Ordering, candidates []Candidate, name, version string) *Blocked {
	var offered, sources []string
	for _, c := range candidates {
		if !slices.Contains(sources, c.Source) {
			sources = append(sources, c.Source)
		}
		if c.Name == name && !slices.Contains(offered, c.Version) {
			offered = append(offered, c.Version)
		}
	}
	slices.SortFunc(offered, func(a, b string) int { return order(b, a) })
	slices.Sort(sources)
	offer := "offer"
	if len(sources) < 2 {
		offer = "offers"
	}
	what, correct := name+" with version "+version, "the version"
	if version == "" {
		what, correct = name, "its name"
	}
	return refuse(ReasonVersionNotFound, "no package %s: looked in %s, which %s %s; correct %s in spec, or add the repository that has it to spec.packageSources",
		what, listOr(sources, "no repository"), offer, listOr(offered[:min(len(offered), shownVersions)], "no version of it"), correct)
}

func listOr(items []string, none string) string {
	if len(items) == 0 {
		return none
	}
	return strings.Join(items, ", ")
}
