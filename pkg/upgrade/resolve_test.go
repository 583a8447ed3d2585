package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func offersOf(name string, versions ...string) []Candidate {
	var out []Candidate
	for _, v := range versions {
		out = append(out, candidate(name, v, debianURI))
	}
	return out
}

// The revision is the packager's, and so is the epoch.
func TestAnUpstreamVersionIsLookedUpNeverPutTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		order   Ordering
		offered []string
		wanted  string
		want    string
	}{
		"a rebuilt revision":               {CompareDeb, []string{"1.28.10-1.1", "1.28.9-2.1", "1.28.8-1.1"}, "1.28.9", "1.28.9-2.1"},
		"the highest of several revisions": {CompareDeb, []string{"1.36.2-1.1", "1.36.2-2.1"}, "1.36.2", "1.36.2-2.1"},
		"a leading v":                      {CompareDeb, []string{"1.36.2-1.1"}, "v1.36.2", "1.36.2-1.1"},
		"a full version is taken as it is": {CompareDeb, []string{"1.36.2-1.1", "1.36.2-2.1"}, "1.36.2-1.1", "1.36.2-1.1"},
		"an epoch that nobody wrote down":  {CompareRPM, []string{"3:18.09.7-3.el7", "3:19.03.2-3.el7"}, "19.03.2", "3:19.03.2-3.el7"},
		"a repacked upstream":              {CompareDeb, []string{"1.6.20~ds1-1+deb12u2", "1.6.20~ds1-1+deb12u3"}, "1.6.20", "1.6.20~ds1-1+deb12u3"},
		"a distribution in the revision":   {CompareDeb, []string{"1.7.28-1~debian.12~bookworm", "1.7.27-1~debian.12~bookworm"}, "1.7.28", "1.7.28-1~debian.12~bookworm"},
		"a candidate is no release":        {CompareDeb, []string{"23.0.0~rc.2-0", "0.10.0-rc2", "23.0.0-0"}, "23.0.0", "23.0.0-0"},
		"a candidate in the revision":      {CompareDeb, []string{"0.10.0-rc2", "0.10.0-1"}, "0.10.0", "0.10.0-1"},
		"a candidate that is asked for":    {CompareDeb, []string{"2.0.0~rc.2-0", "2.0.0-0"}, "2.0.0-rc.2", "2.0.0~rc.2-0"},
		"1.30.1 is not 1.30.10":            {CompareDeb, []string{"1.30.10-1.1", "1.30.1-1.1"}, "1.30.1", "1.30.1-1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ResolvePackage(tc.order, offersOf("pkg", tc.offered...), "pkg", tc.wanted)
			require.NoError(t, err)
			assert.Equal(t, tc.want, c.Version)
		})
	}
}

func TestWhatIsNotOfferedIsNotFound(t *testing.T) {
	for name, tc := range map[string]struct{ wanted string }{
		"a version nobody has":                {wanted: "1.28.7"},
		"a release when there is a candidate": {wanted: "1.29.0"},
		"no version at all":                   {wanted: "latest"},
		"orders for a package manager":        {wanted: "1.28.9; rm -rf /"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ResolvePackage(CompareDeb, offersOf("kubelet", "1.28.9-2.1", "1.29.0~rc.0-1"), "kubelet", tc.wanted)
			requireBlocked(t, err, ReasonVersionNotFound)
		})
	}
	_, err := ResolvePackage(CompareDeb, nil, "kubelet", "1.28.9")
	assert.Contains(t, requireBlocked(t, err, ReasonVersionNotFound).Message, "no repository")
}

// The same index in another order gives the same choice.
func TestTheChoiceDoesNotDependOnTheOrderOfTheIndex(t *testing.T) {
	a, b := candidate("kubelet", "1.37.2-1.1", "https://a.example/"), candidate("kubelet", "1.37.2-1.1", "https://b.example/")
	first, err := ResolvePackage(CompareDeb, []Candidate{a, b}, "kubelet", "1.37.2")
	require.NoError(t, err)
	second, err := ResolvePackage(CompareDeb, []Candidate{b, a}, "kubelet", "1.37.2")
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func TestAPinnedPackageIsComparedExactlyUnlessTheWishHasNoRevision(t *testing.T) {
	assert.True(t, satisfies(CompareDeb, "3.0.15-1~deb12u1", "3.0.15-1~deb12u1"))
	assert.False(t, satisfies(CompareDeb, "3.0.15-1~deb12u2", "3.0.15-1~deb12u1"))
	assert.True(t, satisfies(CompareDeb, "3.0.15-1~deb12u2", "3.0.15"))
	assert.True(t, satisfies(CompareRPM, "3:19.03.2-3.el7", "19.03.2"))
	assert.False(t, satisfies(CompareDeb, "3.0.15-1", "3.0.1"))
	assert.True(t, satisfies(CompareDeb, "3.0.15-1", ""))
}

func TestWhereAVersionWasLookedForIsSaidInASentence(t *testing.T) {
	one := []Candidate{candidate("kubelet", "1.36.3-1.1", "https://a.example")}
	_, err := ResolvePackage(CompareDeb, one, "kubelet", "1.36.4")
	assert.Contains(t, requireBlocked(t, err, ReasonVersionNotFound).Message, "looked in https://a.example, which offers 1.36.3-1.1;")
	_, err = ResolvePackage(CompareDeb, append(one, candidate("kubelet", "1.36.2-1.1", "https://b.example")), "kubelet", "1.36.4")
	assert.Contains(t, requireBlocked(t, err, ReasonVersionNotFound).Message, "looked in https://a.example, https://b.example, which offer 1.36.3-1.1, 1.36.2-1.1;")
}

func TestAPackageThatIsNotFoundIsNamedWithAVersionOnlyWhereOneWasAskedFor(t *testing.T) {
	for version, says := range map[string]string{
		"":    "no package htop: looked in http://deb.example/debian, which offers no version of it; correct its name in spec",
		"3.2": "no package htop with version 3.2: looked in http://deb.example/debian, which offers no version of it; correct the version in spec",
	} {
		t.Run("version "+version, func(t *testing.T) {
			blocked := notFound(CompareDeb, candidatesOf(nil, []string{"2.1.4"}), "htop", version)
			assert.Equal(t, ReasonVersionNotFound, blocked.Reason)
			assert.Contains(t, blocked.Message, says)
		})
	}
}
