package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Status and drift that went wrong for people, each with the report it comes from.
func TestWhatRunsIsNotTakenForWhatItIsNot(t *testing.T) {
	// https://github.com/kubernetes/kubernetes/issues/63168, https://github.com/kubernetes/kubeadm/issues/1617
	t.Run("a new program on disk under an old process is finished with a restart", func(t *testing.T) {
		in := kubeletHop("v1.30.4", "v1.30.4")
		in.Facts.Kubelet.Running = "v1.30.3"
		assert.True(t, in.Facts.Kubelet.RestartPending())
		assert.Contains(t, outline(plan(t, in)), "RestartUnit kubelet.service")
	})
	t.Run("an API server counts by its answer and not by its manifest", func(t *testing.T) {
		in := controlPlaneHop("v1.30.3", "v1.30.4")
		in.Facts.Control.Manifests = map[string]string{"kube-apiserver": "v1.30.4", "kube-controller-manager": "v1.30.4", "kube-scheduler": "v1.30.4"}
		var kinds []StepKind
		for _, s := range plan(t, in).Steps {
			kinds = append(kinds, s.Kind)
		}
		assert.Contains(t, kinds, StepKubeadmUpgrade)
	})
	// https://github.com/openshift/machine-config-operator/issues/2795
	t.Run("a kubelet that somebody moved ahead within its minor is not taken back", func(t *testing.T) {
		in := kubeletHop("v1.30.5", "v1.30.4")
		_, err := NewPlan(in)
		requireBlocked(t, err, ReasonDowngradeRefused)
		wish := wishKubelet("v1.30.4")
		spec := v1alpha1.MachineSpec{MachineTemplateSpec: v1alpha1.MachineTemplateSpec{Versions: &wish}}
		ok, reason, _ := UpToDate(spec, v1alpha1.MachineStatus{Versions: &v1alpha1.ObservedVersions{Kubelet: "v1.30.5"}})
		assert.False(t, ok)
		assert.Equal(t, ReasonAheadOfSpec, reason)
	})
	t.Run("a package that somebody installed and that does not run yet is ahead as well", func(t *testing.T) {
		in := kubeletHop("v1.30.4", "v1.30.4")
		in.Facts.Packages.Installed[1].Version = "1.30.5-1.1"
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, ReasonDowngradeRefused).Message, "1.30.5")
	})
	// https://github.com/k0sproject/k0s/issues/8023
	t.Run("a build that reports a suffix of its own is not restarted forever", func(t *testing.T) {
		in := kubeletHop("v1.30.3", "v1.30.4")
		require.NotEmpty(t, plan(t, in).Steps)
		in.Facts = workerFacts("v1.30.4-0+abc", "2.4.2")
		assert.True(t, new(plan(t, in)).Empty())
	})
	// https://github.com/openshift/api/issues/2821, https://github.com/gardener/machine-controller-manager/issues/645
	t.Run("a host that is another node than its Machine is left alone", func(t *testing.T) {
		in := kubeletHop("v1.30.3", "v1.30.4")
		in.Facts.Node = &NodeFacts{Name: "rack1-08"}
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, ReasonNodeIdentityMismatch).Message, "rack1-08")
	})
	t.Run("an identity that could not be read is not taken for the right one", func(t *testing.T) {
		in := kubeletHop("v1.30.3", "v1.30.4")
		in.Facts.Node = nil
		in.Facts.Problems = []Problem{{Field: "node", Message: "kubelet.conf: permission denied"}}
		_, err := NewPlan(in)
		assert.False(t, requireBlocked(t, err, FindingFactUnknown).Terminal)
	})
}
