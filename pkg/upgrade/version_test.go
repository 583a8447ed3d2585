package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A vendor's suffix says nothing about order, a pre-release does.
func TestVendorSuffixesAreIgnoredAndPreReleasesAreOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want int // of a against b
	}{
		"EKS suffix is the release":             {a: "v1.29.0-eks-a5ec690", b: "v1.29.0", want: 0},
		"k3s suffix is the release":             {a: "v1.29.6+k3s1", b: "v1.29.6", want: 0},
		"dashed k3s suffix is the release":      {a: "v1.29.6-k3s1", b: "v1.29.6+k3s1", want: 0},
		"rancher suffix is the release":         {a: "v1.30.4-rancher1-1", b: "v1.30.4", want: 0},
		"local build is the release":            {a: "v1.30.4-0+abc", b: "v1.30.4", want: 0},
		"dirty build is the release":            {a: "v0.9.1-dirty", b: "v0.9.1", want: 0},
		"suffix that only starts like rc":       {a: "v1.30.0-rcustom", b: "v1.30.0", want: 0},
		"rc is older":                           {a: "v1.30.0-rc.1", b: "v1.30.0", want: -1},
		"beta is older than rc":                 {a: "v1.30.0-beta.0", b: "v1.30.0-rc.0", want: -1},
		"alpha is older than beta":              {a: "v1.30.0-alpha.3", b: "v1.30.0-beta.0", want: -1},
		"rc of a vendor is older":               {a: "v1.30.0-rc.1+k3s1", b: "v1.30.0", want: -1},
		"rc without a dot is older":             {a: "v1.29.6-rc1+k3s1", b: "v1.29.6", want: -1},
		"rc counts by number":                   {a: "v1.30.0-rc.2", b: "v1.30.0-rc.10", want: -1},
		"patch counts by number":                {a: "v1.30.9", b: "v1.30.10", want: -1},
		"the spelling of kubelet --version":     {a: "Kubernetes v1.30.4", b: "v1.30.4", want: 0},
		"a release candidate above older minor": {a: "v1.30.0-rc.1", b: "v1.29.9", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, ok := ParseKubernetes(tc.a)
			require.True(t, ok)
			b, ok := ParseKubernetes(tc.b)
			require.True(t, ok)
			assert.Equal(t, tc.want == 0, a.Equal(b))
			assert.Equal(t, tc.want < 0, a.LessThan(b))
			assert.Equal(t, tc.want > 0, b.LessThan(a))
			assert.Equal(t, tc.a, a.Raw())
		})
	}
}

// A minor such as 27+ is no version, and nothing is put in its place; gitVersion is one.
func TestWhatIsNoVersionIsUnknownAndEqualToNothing(t *testing.T) {
	for _, text := range []string{"", "27+", "1.27+", "v1.27", "Unknown", "v1.30", "latest", "v1.30.4; rm -rf /", "v1.30.4\n", "v1..4", "v99999999999.1.1"} {
		t.Run(text, func(t *testing.T) {
			v, ok := ParseKubernetes(text)
			if text == "v1.30.4\n" {
				require.True(t, ok, "surrounding space is no part of a version")
				return
			}
			assert.False(t, ok)
			assert.False(t, v.Known())
			assert.Equal(t, "Unknown", v.String())
			assert.Equal(t, "Unknown", v.Minor())
			assert.Equal(t, text, v.Raw())
			release, _ := ParseKubernetes("v1.30.0")
			assert.False(t, v.Equal(v))
			assert.False(t, v.LessThan(release))
			assert.False(t, release.LessThan(v))
			assert.False(t, v.SameMinor(release))
			assert.Zero(t, release.MinorsAhead(v))
		})
	}
	v, ok := ParseKubernetes("v1.27.3-gke.100")
	require.True(t, ok)
	assert.Equal(t, "v1.27.3", v.String())
	assert.Equal(t, "v1.27", v.Minor())
}

func TestRuntimeVersionsAreReadInAllTheirShapes(t *testing.T) {
	for text, want := range map[string]struct{ name, version string }{
		"containerd github.com/containerd/containerd v1.7.2 0cae528dd6cb557f7201036e9f43420650207b58": {"containerd", "v1.7.2"},
		"containerd containerd.io v1.7.28 b98a3aace656320842a23f4a392a33f46af97866":                   {"containerd", "v1.7.28"},
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1":                      {"containerd", "v1.6.20"},
		"containerd github.com/containerd/containerd/v2 v2.4.2 1234567":                               {"containerd", "v2.4.2"},
		"containerd://1.7.20":     {"containerd", "v1.7.20"},
		"containerd://2.0.0-rc.2": {"containerd", "v2.0.0-rc.2"},
		"cri-o://1.30.3":          {"cri-o", "v1.30.3"},
		"docker://17.03.0-ce":     {"docker", "v17.3.0"},
		"1.8.1.fc21":              {"", "v1.8.1"},
		"v1.7.27":                 {"", "v1.7.27"},
		"1.7.28-0ubuntu1~22.04.1": {"", "v1.7.28"},
		"docker://Unknown":        {"docker", "Unknown"},
		"containerd://":           {"containerd", "Unknown"},
		"":                        {"", "Unknown"},
	} {
		t.Run(text, func(t *testing.T) {
			r, ok := ParseRuntime(text)
			assert.Equal(t, want.version, r.Version.String())
			assert.Equal(t, want.version != "Unknown", ok)
			assert.Equal(t, want.name, r.Name)
			assert.Equal(t, text, r.Version.Raw())
		})
	}
	assert.True(t, SameRuntime("containerd://1.6.20", "1.6.20~ds1"))
	assert.False(t, SameRuntime("docker://Unknown", "docker://Unknown"))
}
