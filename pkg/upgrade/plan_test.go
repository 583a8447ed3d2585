package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestAControlPlaneMinorWithANewRuntimeIsOneDrainedWindow(t *testing.T) {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime = containerdAt("2.4.2")
	plan, err := NewPlan(PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: controlPlaneFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.1", "v1.37.2"}, []string{"1.7.28", "2.4.2"})})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Preflight",
		"SwitchSource https://pkgs.example/core:/stable:/v1.37/deb/",
		"UnholdPackages kubeadm",
		"InstallPackages kubeadm=1.37.2-1.1",
		"HoldPackages kubeadm",
		"KubeadmUpgrade First v1.37.2",
		"StopSandboxes kubelet.service",
		"InstallPackages containerd=2.4.2-1",
		"ReloadUnits",
		"RestartUnit containerd.service",
		"UnholdPackages kubelet kubectl",
		"InstallPackages kubelet=1.37.2-1.1 kubectl=1.37.2-1.1",
		"HoldPackages kubelet kubectl",
		"ReloadUnits",
		"RestartUnit kubelet.service",
		"Verify",
	}, outline(plan))
	assert.Equal(t, v1alpha1.DisruptionDrain, plan.Disruption)
	require.NotNil(t, plan.Stage)
	assert.Len(t, plan.Stage.Packages, 4)
	verify := plan.Steps[len(plan.Steps)-1].Expect
	assert.Equal(t, "v1.37.2", verify.Kubelet)
	assert.Equal(t, "v1.37.2", verify.ControlPlane)
	assert.Equal(t, "2.4.2", verify.Runtime)
	assert.True(t, verify.StartSandbox)
	assert.Regexp(t, "^sha256:[0-9a-f]{64}$", plan.Hash)
}

func TestAWorkerHopUpgradesItsKubeletConfigurationFirst(t *testing.T) {
	plan, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Preflight",
		"SwitchSource https://pkgs.example/core:/stable:/v1.37/deb/",
		"UnholdPackages kubeadm",
		"InstallPackages kubeadm=1.37.2-1.1",
		"HoldPackages kubeadm",
		"KubeadmUpgrade Other v1.37.2",
		"UnholdPackages kubelet kubectl",
		"InstallPackages kubelet=1.37.2-1.1 kubectl=1.37.2-1.1",
		"HoldPackages kubelet kubectl",
		"ReloadUnits",
		"RestartUnit kubelet.service",
		"Verify",
	}, outline(plan))
}

func TestWhatIsAlreadyThereNeedsNoPlan(t *testing.T) {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime = containerdAt("2.4.2")
	plan, err := NewPlan(PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: controlPlaneFacts("v1.37.2", "2.4.2")})
	require.NoError(t, err)
	assert.True(t, plan.Empty())
	assert.Equal(t, v1alpha1.DisruptionNone, plan.Disruption)
	assert.Nil(t, plan.Stage)
}

// A request that no repository can serve, as a person would make it by mistake.
func TestAVersionThatNoRepositoryHasIsRefusedWithWhatThereIs(t *testing.T) {
	_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.99", "v1.37.2"), Facts: workerFacts("v1.37.2", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.1", "v1.37.2"}, nil)})
	blocked := requireBlocked(t, err, ReasonVersionNotFound)
	assert.True(t, blocked.Terminal)
	assert.Contains(t, blocked.Message, "1.37.99")
	assert.Contains(t, blocked.Message, "1.37.2-1.1, 1.37.1-1.1")
	assert.Contains(t, blocked.Message, "https://pkgs.example/core:/stable:/v1.37/deb/")
}
