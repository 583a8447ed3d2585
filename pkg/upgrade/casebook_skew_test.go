package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Kubelets and kubeadm that went wrong for people, each with the report it comes from.
func TestKubeletsAreNotBrokenAsTheyWereElsewhere(t *testing.T) {
	// https://github.com/kubernetes/kubeadm/issues/2924, https://github.com/kubernetes/kubernetes/issues/120825
	t.Run("a kubelet that kubeadm finds too old holds up the control plane and is named", func(t *testing.T) {
		for _, tc := range []struct {
			api, target, kubelet string
			allowed              bool
		}{
			{"v1.27.9", "v1.28.9", "v1.26.4", false}, {"v1.28.9", "v1.29.6", "v1.26.4", true}, {"v1.28.9", "v1.29.6", "v1.25.16", false},
		} {
			cp, lagging := at("cp1", tc.api, tc.api, wishBoth(tc.target)), at("old", tc.kubelet, "", v1alpha1.Versions{})
			lagging.Managed, lagging.Sidelined = false, true // not Refit's, and down: it counts
			blocked := Allowed(Fleet{Hosts: []HostState{cp, lagging}}, cp, v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: v1alpha1.KubernetesVersion(tc.target)}})
			if tc.allowed {
				assert.Nil(t, blocked)
				continue
			}
			require.NotNil(t, blocked)
			assert.Equal(t, ReasonWaitingForKubelets, blocked.Reason)
			assert.Contains(t, blocked.Message, "old")
		}
	})
	// https://github.com/kubernetes/kubernetes/issues/65562
	t.Run("no kubelet goes past the oldest live API server whoever asks for it", func(t *testing.T) {
		in := kubeletHop("v1.29.7", "v1.30.4")
		in.Assignment.Skew = &v1alpha1.Skew{MinAPIServer: "v1.29.7", MaxAPIServer: "v1.30.4"}
		_, err := NewPlan(in)
		assert.True(t, requireBlocked(t, err, ReasonSkewViolated).Terminal)
	})
	// https://github.com/kubernetes/kubernetes/issues/79704
	t.Run("a control plane passes through every minor with the kubeadm of that minor", func(t *testing.T) {
		cp := at("cp1", "v1.28.9", "v1.28.9", wishBoth("v1.31.2"))
		hops, blocked := Hops(Fleet{Hosts: []HostState{cp}, HopPatch: map[string]string{"v1.29": "v1.29.15", "v1.30": "v1.30.14"}})
		require.Empty(t, blocked)
		var api []string
		for _, h := range hops {
			api = append(api, string(h.Target.ControlPlane))
		}
		assert.Equal(t, []string{"v1.29.15", "v1.30.14", "v1.31.2"}, api)
		in := controlPlaneHop("v1.28.9", "v1.29.15")
		assert.Contains(t, outline(plan(t, in)), "InstallPackages kubeadm=1.29.15-1.1")
		_, err := NewPlan(controlPlaneHop("v1.28.9", "v1.30.14"))
		requireBlocked(t, err, ReasonSkewViolated)
		assert.NotEmpty(t, plan(t, controlPlaneHop("v1.28.1", "v1.28.15")).Steps, "a patch is one hop at any distance")
	})
	t.Run("a crash in the middle of the way goes on from what runs", func(t *testing.T) {
		cp := at("cp1", "v1.28.9", "v1.29.15", wishBoth("v1.31.2"))
		hops, _ := Hops(Fleet{Hosts: []HostState{cp}, HopPatch: map[string]string{"v1.29": "v1.29.15", "v1.30": "v1.30.14"}})
		require.NotEmpty(t, hops)
		assert.EqualValues(t, "v1.30.14", hops[0].Target.ControlPlane)
	})
	t.Run("a spec that is a minor lower is a downgrade and refused", func(t *testing.T) {
		_, err := NewPlan(controlPlaneHop("v1.31.2", "v1.30.14"))
		requireBlocked(t, err, ReasonDowngradeRefused)
	})
	// https://github.com/kubernetes/kubernetes/issues/129385
	t.Run("a kubelet minor drains and a patch does not", func(t *testing.T) {
		assert.Equal(t, v1alpha1.DisruptionDrain, plan(t, kubeletHop("v1.30.7", "v1.31.3")).Disruption)
		assert.Equal(t, v1alpha1.DisruptionRestart, plan(t, kubeletHop("v1.31.2", "v1.31.3")).Disruption)
	})
	t.Run("the drain of a minor is waived only in so many words and that is on record", func(t *testing.T) {
		in := kubeletHop("v1.30.7", "v1.31.3")
		in.Spec.Drain = &v1alpha1.DrainSpec{SkipForMinor: true}
		p := plan(t, in)
		assert.Equal(t, v1alpha1.DisruptionRestart, p.Disruption)
		assert.Equal(t, []string{FindingDrainSkipped}, reasons(p.Findings))
	})
	// https://github.com/kubernetes-sigs/kubespray/issues/8924
	t.Run("a flag that the new kubelet does not know is named with its file before anything is drained", func(t *testing.T) {
		for path, lines := range map[string]string{
			"/etc/default/kubelet":                               `KUBELET_EXTRA_ARGS="--container-runtime=remote"`,
			"/etc/systemd/system/kubelet.service.d/20-site.conf": `Environment="KUBELET_EXTRA_ARGS=--container-runtime=remote"`,
			kubeadmFlagsFile:                                     `KUBELET_KUBEADM_ARGS="--network-plugin=cni"`,
		} {
			in := kubeletHop("v1.26.9", "v1.27.1")
			in.Facts.Kubelet.FlagSources = map[string]string{path: lines}
			_, err := NewPlan(in)
			assert.Contains(t, requireBlocked(t, err, FindingFlagRemoved).Message, path)
		}
	})
	t.Run("what kubeadm takes out of its own file is not held against the host", func(t *testing.T) {
		in := kubeletHop("v1.26.9", "v1.27.1")
		in.Facts.Kubelet.FlagSources = map[string]string{kubeadmFlagsFile: `KUBELET_KUBEADM_ARGS="--container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock --pod-infra-container-image=k8s.gcr.io/pause:3.4.1"`}
		assert.NotEmpty(t, plan(t, in).Steps)
	})
	// https://github.com/siderolabs/talos/issues/13480, https://github.com/kubernetes/kubernetes/issues/100988
	t.Run("a gate that is gone is named with where it is set", func(t *testing.T) {
		in := kubeletHop("v1.30.4", "v1.31.2")
		in.Facts.Kubelet.Configuration = map[string]any{"featureGates": map[string]any{"InTreePluginGCEUnregister": true}}
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, FindingGateRemoved).Message, "the kubelet's configuration sets the feature gate InTreePluginGCEUnregister")
		in = controlPlaneHop("v1.34.4", "v1.35.4")
		in.Facts.Control.FeatureGates = map[string][]string{"kube-apiserver": {"UserNamespacesPodSecurityStandards=true"}}
		_, err = NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, FindingGateRemoved).Message, "kube-apiserver sets the feature gate UserNamespacesPodSecurityStandards")
	})
	// https://github.com/kubernetes/kubernetes/issues/135711
	t.Run("a state file of another policy is found before the kubelet is stopped", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.37.2")
		in.Facts.Kubelet.Configuration = map[string]any{"cpuManagerPolicy": "static"}
		in.Facts.Kubelet.State = []KubeletStateFacts{{Path: "/var/lib/kubelet/cpu_manager_state", Policy: "none"}}
		_, err := NewPlan(in)
		requireBlocked(t, err, FindingKubeletState)
	})
	// https://github.com/gardener/gardener/issues/8512
	t.Run("a change that no program reads restarts nothing", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.3")
		in.Spec.Node = &v1alpha1.NodeSpec{Labels: map[string]string{"rack": "7"}}
		p := plan(t, in)
		assert.True(t, p.Empty())
		assert.Equal(t, v1alpha1.DisruptionNone, p.Disruption)
	})
	// https://github.com/kubernetes/release/issues/2412
	t.Run("installing kubeadm may bounce the kubelet so a minor of it is drained for", func(t *testing.T) {
		in := controlPlaneHop("v1.36.3", "v1.37.2")
		in.Assignment.Target.Kubelet = ""
		assert.Equal(t, v1alpha1.DisruptionDrain, plan(t, in).Disruption)
	})
	// https://github.com/kubernetes/kubeadm/issues/1317, https://github.com/kubernetes/kubeadm/issues/2185
	t.Run("no kubelet is restarted into the expired certificate that its kubeconfig embeds", func(t *testing.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Now = now
		in.Facts.Certs = []CertFacts{
			{Path: "/etc/kubernetes/kubelet.conf", NotAfter: now.Add(-24 * time.Hour)},
			{Path: "/var/lib/kubelet/pki/kubelet-client-current.pem", NotAfter: now.Add(200 * 24 * time.Hour)},
		}
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, FindingCertificateExpired).Message, "/etc/kubernetes/kubelet.conf")
		in.Facts.Certs = []CertFacts{{Path: "/etc/kubernetes/pki/apiserver.crt", NotAfter: now.Add(12 * 24 * time.Hour)}}
		assert.Equal(t, []string{FindingCertificateExpiring}, reasons(plan(t, in).Findings))
	})
}
