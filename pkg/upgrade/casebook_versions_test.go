package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Versions that went wrong for people, each with the report it comes from.
func TestVersionsAreNotMisreadAsTheyWereElsewhere(t *testing.T) {
	// https://github.com/kubernetes/release/issues/3623
	t.Run("a package is published under a second revision and the first is nowhere", func(t *testing.T) {
		in := kubeletHop("v1.28.8", "v1.28.9")
		in.Candidates = nil
		for _, name := range kubernetesPackages {
			for _, v := range []string{"1.28.10-1.1", "1.28.9-2.1", "1.28.8-1.1"} {
				in.Candidates = append(in.Candidates, candidate(name, v, "https://pkgs.example/core:/stable:/v1.28/deb/"))
			}
		}
		assert.Contains(t, outline(plan(t, in)), "InstallPackages kubelet=1.28.9-2.1 kubectl=1.28.9-2.1")
	})
	t.Run("a second revision of what is installed is no reason to install it again", func(t *testing.T) {
		in := kubeletHop("v1.28.9", "v1.28.9")
		in.Candidates = []Candidate{candidate("kubelet", "1.28.9-2.1", debianURI)}
		assert.Equal(t, "1.28.9-1.1", in.Facts.Packages.Installed[1].Version)
		assert.True(t, new(plan(t, in)).Empty())
	})
	// https://github.com/aws/eks-anywhere-build-tooling/issues/2925
	t.Run("a vendor's suffix does not make a version older", func(t *testing.T) {
		for raw, release := range map[string]string{"v1.29.0-eks-a5ec690": "v1.29.0", "v1.29.6+k3s1": "v1.29.6", "v1.30.4-rancher1-1": "v1.30.4", "v1.30.4-0+abc": "v1.30.4"} {
			in := kubeletHop(raw, release)
			assert.True(t, new(plan(t, in)).Empty(), "%s is %s, and no loop starts", raw, release)
			v, _ := ParseKubernetes(raw)
			assert.Equal(t, raw, v.Raw())
		}
	})
	t.Run("a pre-release really is older than its release", func(t *testing.T) {
		for _, raw := range []string{"v1.30.0-rc.1", "v1.30.0-beta.0", "v1.30.0-alpha.3"} {
			v, ok := ParseKubernetes(raw)
			require.True(t, ok)
			release, _ := ParseKubernetes("v1.30.0")
			assert.True(t, v.LessThan(release), raw)
		}
	})
	// https://github.com/VictoriaMetrics/operator/issues/449
	t.Run("a minor of 27+ is no version and no other is put in its place", func(t *testing.T) {
		for _, text := range []string{"27+", "", "1.27+"} {
			in := kubeletHop("v1.27.3", "v1.27.9")
			in.Facts.Kubelet.Running = text
			_, err := NewPlan(in)
			assert.False(t, requireBlocked(t, err, ReasonVersionUnknown).Terminal)
		}
		v, ok := ParseKubernetes("v1.27.3-gke.100")
		assert.True(t, ok)
		assert.Equal(t, "v1.27.3", v.String())
	})
	t.Run("a kubelet that is reported without its v is the same kubelet", func(t *testing.T) {
		in := kubeletHop("1.30.4", "v1.30.4")
		assert.True(t, new(plan(t, in)).Empty())
		in = kubeletHop("1.30.4", "v1.30.5")
		assert.NotEmpty(t, plan(t, in).Steps)
	})
	// https://github.com/spegel-org/spegel/issues/806, https://github.com/leptonai/gpud/issues/1099
	t.Run("a runtime is understood in every shape in which distributions print it", func(t *testing.T) {
		for text, want := range map[string]string{
			"containerd github.com/containerd/containerd v1.7.2 0cae528dd6cb557f7201036e9f43420650207b58": "v1.7.2",
			"containerd containerd.io v1.7.28 b98a3aace656320842a23f4a392a33f46af97866":                   "v1.7.28",
			"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1":                      "v1.6.20",
			"containerd://1.7.20": "v1.7.20", "docker://17.03.0-ce": "v17.3.0", "1.8.1.fc21": "v1.8.1",
			"docker://Unknown": v1alpha1.Unknown, "containerd://": v1alpha1.Unknown,
		} {
			r, _ := ParseRuntime(text)
			assert.Equal(t, want, r.Version.String(), text)
		}
	})
	t.Run("a runtime of unknown version blocks a plan and starts none", func(t *testing.T) {
		for _, text := range []string{"docker://Unknown", "containerd://", ""} {
			in := kubeletHop("v1.36.3", "v1.36.3")
			in.Facts.Runtime.Running = text
			in.Assignment.Target.ContainerRuntime = containerdAt("2.4.2")
			_, err := NewPlan(in)
			requireBlocked(t, err, ReasonVersionUnknown)
		}
	})
	// https://github.com/sous-chefs/docker/issues/1078
	t.Run("an epoch that only the repository writes is found", func(t *testing.T) {
		c, err := ResolvePackage(CompareRPM, offersOf("docker-ce", "3:18.09.7-3.el7", "3:19.03.2-3.el7"), "docker-ce", "19.03.2")
		require.NoError(t, err)
		assert.Equal(t, "3:19.03.2-3.el7", c.Version)
		assert.Positive(t, CompareRPM("3:19.03.2-3.el7", "19.03.9-3.el7"))
	})
	// https://github.com/docker/docker-ce-packaging/issues/820
	t.Run("a package's order is that of its manager and not that of releases", func(t *testing.T) {
		for _, newerFirst := range [][2]string{
			{"5:19.03.9~3-0~ubuntu-bionic", "20.10.0"}, {"23.0.0-0", "23.0.0~rc.2-0"}, {"1.6.20-1", "1.6.20~ds1-1"},
			{"0.10.0-rc2", "0.10.0"}, {"1.30.10-1.1", "1.30.9-1.1"}, {"1.36.2-2.1", "1.36.2-1.1"}, {"1.28.2-1.1", "1.28.2-00"},
		} {
			assert.Positive(t, CompareDeb(newerFirst[0], newerFirst[1]), "%s over %s", newerFirst[0], newerFirst[1])
		}
	})
	// https://github.com/rancher/system-upgrade-controller/issues/28, https://github.com/k3s-io/k3s/issues/5162
	t.Run("a version with a plus is itself in its dashed spelling and is escaped in addresses", func(t *testing.T) {
		assert.True(t, SameKubernetes("v1.29.6+k3s1", "v1.29.6-k3s1"))
		assert.Equal(t, "https://p.example/kubelet_1.29.6%2Bk3s1-1_amd64.deb", Candidate{Source: "https://p.example/", Path: "kubelet_1.29.6+k3s1-1_amd64.deb"}.URI())
	})
}
