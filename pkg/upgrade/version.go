package upgrade

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Version is a version parsed once, at the edge. The zero value is Unknown: not
// equal to, not older and not newer than anything, not even another Unknown.
type Version struct {
	raw string
	sem *semver.Version // without vendor suffix; nil when Unknown
}

// releaseShape takes the numbers of a version apart from what follows them.
var releaseShape = regexp.MustCompile(`^v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:([-+~.][0-9A-Za-z.+~_-]*))?$`)

// preRelease are the suffixes that make a version older than its release. All
// others are a vendor's or a packager's, and say nothing about order.
var preRelease = regexp.MustCompile(`^[-~.](alpha|beta|rc)(?:[-.]?([0-9]+(?:\.[0-9]+)*)|[^0-9A-Za-z]|$)`)

// ParseKubernetes parses the version of a Kubernetes component: "v1.37.2",
// "Kubernetes v1.30.4" (as `kubelet --version` prints it), "v1.29.6+k3s1". It
// reports false, and a Version that is Unknown, for anything else: a minor such as
// "27+" is no version, gitVersion is.
func ParseKubernetes(text string) (Version, bool) {
	return kubernetesVersions.of(text, parseKubernetes)
}

func parseKubernetes(text string) (Version, bool) {
	bare := strings.TrimPrefix(strings.TrimSpace(text), "Kubernetes ")
	return parseRelease(text, strings.TrimSpace(bare))
}

// ParseRelease parses the version of another release, such as etcd or containerd,
// with or without a leading v.
func ParseRelease(text string) (Version, bool) {
	return parseRelease(text, strings.TrimSpace(text))
}

func parseRelease(raw, text string) (Version, bool) {
	parts := releaseShape.FindStringSubmatch(text)
	if parts == nil {
		return Version{raw: raw}, false
	}
	sem := strings.Join([]string{number(parts[1]), number(parts[2]), number(parts[3])}, ".") + preReleaseOf(parts[4])
	v, err := semver.StrictNewVersion(sem)
	if err != nil {
		return Version{raw: raw}, false
	}
	return Version{raw: raw, sem: v}, true
}

// preReleaseOf returns a suffix in semver's spelling, or "" for a vendor's suffix.
func preReleaseOf(suffix string) string {
	m := preRelease.FindStringSubmatch(suffix)
	if m == nil {
		return ""
	}
	if m[2] == "" {
		return "-" + m[1]
	}
	fields := strings.Split(m[2], ".")
	for i := range fields {
		fields[i] = number(fields[i])
	}
	return "-" + m[1] + "." + strings.Join(fields, ".")
}

// number drops leading zeros, which semver does not allow and vendors write (17.03.0).
func number(digits string) string {
	if n := strings.TrimLeft(digits, "0"); n != "" {
		return n
	}
	return "0"
}

// Known says whether the text was understood.
func (v Version) Known() bool { return v.sem != nil }

// Raw is the text as it was read.
func (v Version) Raw() string { return v.raw }

// String is the version without any vendor suffix, such as v1.29.0, or Unknown.
func (v Version) String() string {
	if v.sem == nil {
		return v1alpha1.Unknown
	}
	return "v" + v.sem.String()
}

// Upstream is String without the leading v, as packages are named.
func (v Version) Upstream() string { return strings.TrimPrefix(v.String(), "v") }

// Minor is the minor as repositories are named, such as v1.37, or Unknown.
func (v Version) Minor() string {
	if v.sem == nil {
		return v1alpha1.Unknown
	}
	return fmt.Sprintf("v%d.%d", v.sem.Major(), v.sem.Minor())
}

// nextMinor is the minor after this one, such as v1.38.
func (v Version) nextMinor() string {
	return fmt.Sprintf("v%d.%d", v.sem.Major(), v.sem.Minor()+1)
}

// Equal compares without vendor suffixes; Unknown is equal to nothing.
func (v Version) Equal(o Version) bool { return v.sem != nil && o.sem != nil && v.sem.Equal(o.sem) }

// LessThan is false when either is Unknown.
func (v Version) LessThan(o Version) bool {
	return v.sem != nil && o.sem != nil && v.sem.LessThan(o.sem)
}

// SameMinor says that major and minor agree; false when either is Unknown.
func (v Version) SameMinor(o Version) bool { return v.MinorsAhead(o) == 0 && v.Known() && o.Known() }

// majorStep makes a difference in major larger than any in minor.
const majorStep = 1_000_000

// MinorsAhead is by how many minors v is newer than o, negative when it is older;
// another major counts as very far. Both must be Known, else it is 0.
func (v Version) MinorsAhead(o Version) int {
	if v.sem == nil || o.sem == nil {
		return 0
	}
	return v.ordinal() - o.ordinal()
}

func (v Version) ordinal() int {
	return int(v.sem.Major())*majorStep + int(min(v.sem.Minor(), majorStep-1))
}

// SameKubernetes says whether two texts name one Kubernetes version, vendor suffix aside.
func SameKubernetes(a, b string) bool {
	x, _ := ParseKubernetes(a)
	y, _ := ParseKubernetes(b)
	return x.Equal(y)
}
