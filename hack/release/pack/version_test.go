package pack_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/hack/release/pack"
)

func TestPackageVersionsSortAsReleasesDo(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":                     "1.2.3",
		"v1.2.3-rc.1":                "1.2.3~rc.1",
		"v1.2.3-alpha-x":             "1.2.3~alpha.x",
		"v1.2.3-4-gabcdef0":          "1.2.3+4.gabcdef0",
		"v1.2.3-4-gabcdef0-dirty":    "1.2.3+4.gabcdef0.dirty",
		"v1.2.3-rc.1-2-gabcdef0":     "1.2.3~rc.1+2.gabcdef0",
		"c6780f1":                    "0.0.0~dev.c6780f1",
		"dev":                        "0.0.0~dev.dev",
		"v1.2":                       "0.0.0~dev.v1.2",
		"":                           "0.0.0~dev",
		"1.2.3":                      "0.0.0~dev.1.2.3",
		"feature/x; rm -rf / #$(id)": "0.0.0~dev.feature.x.rm.rf.id",
	} {
		assert.Equal(t, want, pack.PackageVersion(version), version)
	}
}

func TestOnlyVersionsAreReleased(t *testing.T) {
	for _, good := range []string{"v0.1.0", "v1.2.3-rc.1", "v1.2.3-beta"} {
		require.NoError(t, pack.Release(good), good)
	}
	for _, bad := range []string{"", "dev", "1.2.3", "v1.2", "v1.2.3+x", "v1.2.3-4-gabcdef0", "v1.2.3-4-gabcdef0-dirty", "v1.2.3 ", "../v1.2.3"} {
		require.ErrorContains(t, pack.Release(bad), "must be like v1.2.3", bad)
	}
}

var packageVersion = regexp.MustCompile(`^[0-9][0-9A-Za-z.+~]*$`)

func FuzzPackageVersion(f *testing.F) {
	for _, seed := range []string{"v1.2.3", "v1.2.3-rc.1-2-gabcdef0-dirty", "c6780f1", "", "v1.2.3-\x00", "ä", "v1.2.3-~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		got := pack.PackageVersion(version)
		if !packageVersion.MatchString(got) {
			t.Fatalf("%q gives %q, which no package manager takes", version, got)
		}
	})
}
