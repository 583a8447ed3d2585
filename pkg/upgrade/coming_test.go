package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// controlPlaneAlone is a hop of a control plane whose kubelet follows in a window of its own.
func controlPlaneAlone(from, to, kubelet string) PlanInput {
	in := controlPlaneHop(from, to)
	in.Assignment.Target.Kubelet = ""
	in.Spec.Versions = &v1alpha1.Versions{ControlPlane: v1alpha1.KubernetesVersion(to), Kubelet: v1alpha1.KubernetesVersion(kubelet)}
	return in
}

func TestWhatItsKubeletWouldNotStartWithStopsTheControlPlaneBefore(t *testing.T) {
	flag := func(path, text string) func(in *PlanInput) {
		return func(in *PlanInput) { in.Facts.Kubelet.FlagSources = map[string]string{path: text} }
	}
	gate := func(name string, value bool) func(in *PlanInput) {
		return func(in *PlanInput) {
			in.Facts.Kubelet.Configuration = map[string]any{"featureGates": map[string]any{name: value}}
		}
	}
	cgroup := func(in *PlanInput) { in.Facts.OS.CgroupVersion = 1 }
	old := func(in *PlanInput) { in.Facts.Runtime.Running, in.Facts.Runtime.Installed = "1.7.28", "1.7.28" }
	unread := func(in *PlanInput) { in.Facts.Problems = []Problem{{Field: "kubelet.flagSources", Message: "EIO"}} }
	const owners = "/etc/default/kubelet"
	for name, tc := range map[string]struct {
		from, to, kubelet string
		change            func(in *PlanInput)
		reason, says      string
	}{
		"a flag that is gone":                    {"v1.36.3", "v1.37.2", "v1.37.2", flag(owners, "X=--boot-id-file=/x"), FindingFlagRemoved, "its kubelet follows to v1.37.2"},
		"also on the way to a later minor":       {"v1.36.3", "v1.37.2", "v1.39.0", flag(owners, "X=--boot-id-file=/x"), FindingFlagRemoved, "its kubelet follows to v1.37.2"},
		"a gate that is gone":                    {"v1.36.3", "v1.37.2", "v1.37.2", gate("GangScheduling", true), FindingGateRemoved, "left half done"},
		"a gate that is locked":                  {"v1.35.4", "v1.36.3", "v1.36.3", gate("GitRepoVolumeDriver", true), FindingGateLocked, "left half done"},
		"cgroup v1":                              {"v1.34.4", "v1.35.4", "v1.35.4", cgroup, FindingCgroupV1, "left half done"},
		"a runtime that is too old":              {"v1.37.2", "v1.38.0", "v1.38.0", old, ReasonRuntimeTooOld, "left half done"},
		"what could not be found out":            {"v1.36.3", "v1.37.2", "v1.37.2", unread, FindingFactUnknown, "kubelet.flagSources"},
		"not a flag that goes later":             {"v1.35.3", "v1.36.2", "v1.37.2", flag(owners, "X=--boot-id-file=/x"), "", ""},
		"not one that this hop's kubeadm cleans": {"v1.34.4", "v1.35.4", "v1.35.4", flag(kubeadmFlagsFile, `X="--pod-infra-container-image=p"`), "", ""},
		"not where no kubelet is wished":         {"v1.36.3", "v1.37.2", "", flag(owners, "X=--boot-id-file=/x"), "", ""},
		"not where the kubelet stays behind":     {"v1.36.3", "v1.37.2", "v1.36.3", flag(owners, "X=--boot-id-file=/x"), "", ""},
		"not where the runtime moves before it":  {"v1.37.2", "v1.38.0", "v1.38.0", func(in *PlanInput) { old(in); in.Spec.Versions.ContainerRuntime = containerdAt("2.4.2") }, "", ""},
		"not cgroup v1 that it is told to take": {"v1.34.4", "v1.35.4", "v1.35.4", func(in *PlanInput) {
			cgroup(in)
			in.Facts.Kubelet.Configuration = map[string]any{"failCgroupV1": false}
		}, "", ""},
		"not what the kubelet could not even have": {"v1.36.3", "v1.37.2", "v1.37.2", flag(owners, "X=--node-ip=192.0.2.7"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := controlPlaneAlone(tc.from, tc.to, tc.kubelet)
			tc.change(&in)
			p, err := NewPlan(in)
			if tc.reason == "" {
				require.NoError(t, err)
				assert.NotEmpty(t, p.Steps)
				return
			}
			assert.Contains(t, requireBlocked(t, err, tc.reason).Message, tc.says)
		})
	}
	together := controlPlaneHop("v1.36.3", "v1.37.2")
	flag(owners, "X=--boot-id-file=/x")(&together)
	_, err := NewPlan(together)
	assert.NotContains(t, requireBlocked(t, err, FindingFlagRemoved).Message, "half done", "its kubelet goes along")
}
