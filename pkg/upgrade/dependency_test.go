package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// B19: an exact dependency without a release is met by every release to rpm, and by none to dpkg.
func TestAVersionWithoutAReleaseMeansWhatThePackageManagerMeans(t *testing.T) {
	for name, tc := range map[string]struct {
		manager, clause, version string
		want                     bool
	}{
		"rpm, exact, another release":   {"dnf", "kubernetes-cni (= 0.6.0)", "0.6.0-150500.2.1", true},
		"rpm, exact, another version":   {"dnf", "kubernetes-cni (= 0.6.0)", "0.7.5-1", false},
		"rpm, at most":                  {"dnf", "kubernetes-cni (<= 1.2.0)", "1.2.0-5", true},
		"rpm, more than":                {"dnf", "kubernetes-cni (>> 1.2.0)", "1.2.0-5", false},
		"rpm, exact, with its release":  {"dnf", "kubernetes-cni (= 0.6.0-1)", "0.6.0-2", false},
		"rpm, absent":                   {"dnf", "kubernetes-cni (= 0.6.0)", "", false},
		"dpkg, exact, another revision": {"apt", "kubernetes-cni (= 0.6.0)", "0.6.0-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{order: OrderingOf(tc.manager)}
			p.in.Facts.Packages.Manager = tc.manager
			assert.Equal(t, tc.want, p.satisfies(parseDependency(tc.clause)[0], tc.version))
		})
	}
}
