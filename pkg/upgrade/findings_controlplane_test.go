package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// controlPlaneHop is a control plane's move with its kubelet.
func controlPlaneHop(from, to string) PlanInput {
	return PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: controlPlaneTo(to), Facts: controlPlaneFacts(from, "2.4.2"), Candidates: candidatesOf([]string{to}, nil)}
}

func TestTwoManifestsForOnePodAreRefused(t *testing.T) {
	in := controlPlaneHop("v1.36.3", "v1.37.2")
	in.Facts.StaticPods = []StaticPodFacts{
		{Path: "/etc/kubernetes/manifests/kube-apiserver.yaml", Namespace: "kube-system", Name: "kube-apiserver"},
		{Path: "/etc/kubernetes/manifests/kube-apiserver.yaml.bak", Namespace: "kube-system", Name: "kube-apiserver"},
		{Path: "/etc/kubernetes/manifests/etcd.yaml", Namespace: "kube-system", Name: "etcd"},
	}
	_, err := NewPlan(in)
	blocked := requireBlocked(t, err, FindingDuplicateStaticPod)
	assert.Contains(t, blocked.Message, "kube-apiserver.yaml, /etc/kubernetes/manifests/kube-apiserver.yaml.bak")
	assert.NotContains(t, blocked.Message, "etcd.yaml")

	in.Facts.StaticPods[1].Namespace = "tenant"
	assert.Empty(t, plan(t, in).Findings, "another namespace, another pod")
}

func TestAPIsThatGoAwayWhileTheyAreAskedForKeepAMinorBack(t *testing.T) {
	in := controlPlaneHop("v1.31.4", "v1.32.3")
	in.Facts.Control.DeprecatedAPIs = []DeprecatedAPIFacts{
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", Subresource: "status", RemovedRelease: "1.32"},
		{Version: "v1", Resource: "componentstatuses"},
		{Group: "example.io", Version: "v1beta1", Resource: "things", RemovedRelease: "1.40"},
	}
	_, err := NewPlan(in)
	blocked := requireBlocked(t, err, FindingRemovedAPI)
	assert.Contains(t, blocked.Message, "flowschemas/status.v1beta3.flowcontrol.apiserver.k8s.io (gone from v1.32 on)")
	assert.NotContains(t, blocked.Message, "things")
	assert.NotContains(t, blocked.Message, "componentstatuses", "deprecated, and nobody has said when it goes")

	mended := in
	mended.Spec.Kubeadm = &v1alpha1.KubeadmSpec{IgnorePreflightErrors: []v1alpha1.PreflightID{FindingRemovedAPI, "CreateJob"}}
	p := plan(t, mended)
	require.Equal(t, []string{FindingRemovedAPI}, reasons(p.Findings))
	assert.Equal(t, SeverityWarning, p.Findings[0].Severity)
	for _, s := range p.Steps {
		if s.Kubeadm != nil {
			assert.Equal(t, []string{"CreateJob"}, s.Kubeadm.IgnorePreflightErrors, "kubeadm knows nothing of our own")
		}
	}

	mended.Facts.Problems = []Problem{{Field: "controlPlane.deprecatedAPIs", Message: "status 403"}}
	assert.NotEmpty(t, plan(t, mended).Steps, "who has vouched for the clients needs no metrics")

	earlier := controlPlaneHop("v1.30.4", "v1.31.4")
	earlier.Facts.Control.DeprecatedAPIs = in.Facts.Control.DeprecatedAPIs
	assert.Empty(t, plan(t, earlier).Findings, "it is still there")
	patch := controlPlaneHop("v1.32.3", "v1.32.4")
	patch.Facts.Control.DeprecatedAPIs = in.Facts.Control.DeprecatedAPIs
	assert.Empty(t, plan(t, patch).Findings, "a patch takes nothing away")
}

// https://github.com/etcd-io/etcd/issues/20793, https://etcd.io/blog/2025/zombie_members_upgrade/
func TestEtcdGoesTo36OnlyFromAReleaseThatHasSetItsMembershipRight(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd, from, to string
		refused        string
		warned         bool
	}{
		"membership may be wrong":              {etcd: "3.5.21-0", from: "v1.33.1", to: "v1.34.1", refused: FindingEtcdTooOld},
		"the last that may be wrong":           {etcd: "3.5.23", from: "v1.33.1", to: "v1.34.1", refused: FindingEtcdTooOld},
		"removed members may come back":        {etcd: "3.5.24-0", from: "v1.33.13", to: "v1.34.1", warned: true},
		"all is set right":                     {etcd: "3.5.26-0", from: "v1.33.13", to: "v1.34.1"},
		"it is there already":                  {etcd: "3.6.4-0", from: "v1.34.1", to: "v1.35.4"},
		"kubeadm does not bring 3.6 yet":       {etcd: "3.5.21-0", from: "v1.32.1", to: "v1.33.1"},
		"a tag that is no version":             {etcd: "latest", from: "v1.33.1", to: "v1.34.1", refused: FindingFactUnknown},
		"etcd is elsewhere and moves not here": {etcd: "", from: "v1.33.1", to: "v1.34.1"},
	} {
		t.Run(name, func(t *testing.T) {
			in := controlPlaneHop(tc.from, tc.to)
			in.Facts.Control.Etcd = tc.etcd
			p, err := NewPlan(in)
			if tc.refused != "" {
				assert.Contains(t, requireBlocked(t, err, tc.refused).Message, tc.etcd)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.warned, len(p.Findings) == 1)
		})
	}
	dead := controlPlaneHop("v1.33.1", "v1.34.1")
	dead.Facts.Control.Etcd, dead.Facts.Control.Manifests = "", map[string]string{"etcd": "3.5.26-0"}
	_, err := NewPlan(dead)
	requireBlocked(t, err, FindingFactUnknown)
}

func TestAGateInTheManifestOfAComponentIsFoundToo(t *testing.T) {
	in := controlPlaneHop("v1.30.4", "v1.31.2")
	in.Facts.Control.FeatureGates = map[string][]string{"kube-apiserver": {"NodeSwap=true", "ConsistentHTTPGetHandlers=true"}}
	_, err := NewPlan(in)
	blocked := requireBlocked(t, err, FindingGateRemoved)
	assert.Contains(t, blocked.Message, "kube-apiserver")
	assert.Contains(t, blocked.Message, "ConsistentHTTPGetHandlers")
	assert.NotContains(t, blocked.Message, "NodeSwap")

	late := kubeletTo("v1.31.2", "v1.31.2")
	late.KubeadmRole = ""
	in.Assignment = late
	in.Facts.Control.APIServer, in.Facts.Control.ControllerManager, in.Facts.Control.Scheduler = "v1.31.2", "v1.31.2", "v1.31.2"
	assert.Empty(t, plan(t, in).Findings, "the control plane stays as it is")
}

func TestTheRoleAndTheHostMustAgree(t *testing.T) {
	asWorker := controlPlaneHop("v1.36.3", "v1.36.4")
	asWorker.Spec, asWorker.Assignment = worker(), kubeletTo("v1.36.4", "v1.36.4")
	_, err := NewPlan(asWorker)
	assert.Contains(t, requireBlocked(t, err, ReasonRoleMismatch).Message, "spec.roles has no ControlPlane")

	etcdOnly := asWorker
	etcdOnly.Facts.Control = &ControlFacts{Etcd: "3.6.4", Manifests: map[string]string{"etcd": "3.6.4-0"}}
	assert.NotEmpty(t, plan(t, etcdOnly).Steps, "etcd alone is no control plane")

	noneThere := kubeletHop("v1.36.3", "v1.36.4")
	noneThere.Spec = controlPlane()
	_, err = NewPlan(noneThere)
	assert.Contains(t, requireBlocked(t, err, ReasonRoleMismatch).Message, "runs no control plane")
}
