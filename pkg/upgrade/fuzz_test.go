package upgrade

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is parsed keeps its raw text, and reads back from its own spelling as itself.
func FuzzParseKubernetes(f *testing.F) {
	for _, seed := range []string{"v1.37.2", "Kubernetes v1.30.4", "v1.29.6+k3s1", "v1.30.0-rc.1", "27+", "v1.29.0-eks-a5ec690", "v017.03.00-ce"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := ParseKubernetes(text)
		require.Equal(t, text, v.Raw())
		require.Equal(t, ok, v.Known())
		require.Equal(t, ok, v.Equal(v))
		require.False(t, v.LessThan(v))
		if !ok {
			require.Equal(t, "Unknown", v.String())
			return
		}
		again, ok := ParseKubernetes(v.String())
		require.True(t, ok)
		require.True(t, v.Equal(again))
		require.Equal(t, v.String(), again.String())
		require.True(t, strings.HasPrefix(v.String(), v.Minor()+"."))
	})
}

func FuzzParseRuntime(f *testing.F) {
	for _, seed := range []string{"containerd://1.7.20", "docker://17.03.0-ce", "1.8.1.fc21", "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1", "docker://Unknown", "://", "2.0.0-rc.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := ParseRuntime(text)
		require.Equal(t, text, r.Version.Raw())
		require.Equal(t, ok, r.Version.Known())
		require.Equal(t, ok, SameRuntime(text, text))
		if ok {
			require.True(t, SameRuntime(text, r.Version.String()))
		}
	})
}

func FuzzCompareDeb(f *testing.F) { fuzzOrdering(f, CompareDeb) }

func FuzzCompareRPM(f *testing.F) { fuzzOrdering(f, CompareRPM) }

// fuzzOrdering asserts that an order is one: reflexive, antisymmetric and transitive.
func fuzzOrdering(f *testing.F, order Ordering) {
	f.Helper()
	f.Add("1.36.2-2.1", "1.36.2-1.1", "5:19.03.9~3-0~ubuntu-bionic")
	f.Add("1.6.20~ds1-1", "1.6.20-1", "0.10.0-rc2")
	f.Add("2.0^git1-1", "2.0-1", "2.0~rc1-1")
	f.Add(":", "-", "~^")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		require.Zero(t, order(a, a))
		require.Equal(t, order(a, b), -order(b, a))
		if order(a, b) <= 0 && order(b, c) <= 0 {
			require.LessOrEqual(t, order(a, c), 0, "%q <= %q <= %q", a, b, c)
		}
		require.Contains(t, []int{-1, 0, 1}, order(b, c))
	})
}

func FuzzParseDependency(f *testing.F) {
	for _, seed := range []string{"kubernetes-cni (>= 1.2.0)", "mount | util-linux", "libc6:any (<< 2.36)", "a (= )", "(", ""} {
		f.Add(seed, "1.0-1")
	}
	f.Fuzz(func(t *testing.T, clause, version string) {
		for _, d := range parseDependency(clause) {
			require.Contains(t, clause, d.name)
			require.False(t, d.satisfiedBy(CompareDeb, ""), "what is absent satisfies nothing")
			d.satisfiedBy(CompareDeb, version)
		}
	})
}

// Only the minor of a URI ever changes, and only where there is exactly one.
func FuzzSourceRewriting(f *testing.F) {
	for _, seed := range []string{"https://pkgs.k8s.io/core:/stable:/v1.29/deb/", "http://m/v1.29", "http://m/v1.29/v1.28/", "http://m/", "/v1.29/v1.29/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		request, changes, err := Sources(withSource(uri, "kubelet"), kubeletTarget("v1.30.4"), worker())
		if err != nil {
			requireBlocked(t, err, ReasonSourceAmbiguous)
			assert.Greater(t, strings.Count(uri, "v1."), 1, "one minor is not ambiguous")
			return
		}
		for _, c := range changes {
			assert.Equal(t, uri, c.From)
			before, after := strings.Split(uri, "/"), strings.Split(c.To, "/")
			require.Len(t, after, len(before))
			changed := 0
			for i := range before {
				if before[i] != after[i] {
					changed++
					assert.Regexp(t, `^v1\.[0-9]+$`, before[i])
					assert.Equal(t, "v1.30", after[i])
				}
			}
			assert.Equal(t, 1, changed)
			assert.Contains(t, uris(request), c.To)
		}
	})
}

// A package version read from an index never makes the lookup choose what was not asked for.
func FuzzResolvePackage(f *testing.F) {
	f.Add("1.28.9-2.1", "1.28.9")
	f.Add("3:19.03.2-3.el7", "19.03.2")
	f.Add("0.10.0-rc2", "0.10.0")
	f.Fuzz(func(t *testing.T, offered, wanted string) {
		for _, order := range []Ordering{CompareDeb, CompareRPM} {
			c, err := ResolvePackage(order, offersOf("pkg", offered), "pkg", wanted)
			if err != nil {
				requireBlocked(t, err, ReasonVersionNotFound)
				continue
			}
			require.Equal(t, offered, c.Version)
			want, known := ParseRelease(wanted)
			require.True(t, offered == wanted || known && packageUpstream(offered).Equal(want))
		}
	})
}
