package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStepUndoneTwiceIsTheStep(t *testing.T) {
	for name, step := range map[string]Step{
		"packages": {Kind: StepInstallPackages, Packages: []PackageChange{{Name: "kubelet", From: "1", To: "2", Held: true}, {Name: "new", To: "1"}, {Name: "gone", From: "1"}}},
		"a source": {Kind: StepSwitchSource, Source: &SourceChange{Name: "k8s", File: "/etc/apt/sources.list.d/k8s.list", From: "a", To: "b"}},
		"a hold":   {Kind: StepHoldPackages, Packages: []PackageChange{{Name: "kubelet"}}},
		"no hold":  {Kind: StepUnholdPackages, Packages: []PackageChange{{Name: "kubelet"}}},
		"a reload": {Kind: StepReloadUnits},
		"a unit":   {Kind: StepRestartUnit, Unit: "kubelet.service"},
	} {
		t.Run(name, func(t *testing.T) {
			once, ok := Inverse(step)
			require.True(t, ok)
			twice, ok := Inverse(once)
			require.True(t, ok)
			assert.Equal(t, step, twice)
		})
	}
}

func TestUndoingAnInstallGoesBackAndNamesNoFile(t *testing.T) {
	back, ok := Inverse(Step{Kind: StepInstallPackages, Packages: []PackageChange{{Name: "a", From: "1", To: "2", File: "x.deb", SHA256: "x"}, {Name: "b", To: "1", File: "y.deb"}}})
	require.True(t, ok)
	assert.Equal(t, []PackageChange{{Name: "b", From: "1"}, {Name: "a", From: "2", To: "1"}}, back.Packages)
}

func TestAKubeletThatWasStoppedIsStartedAgain(t *testing.T) {
	back, ok := Inverse(Step{Kind: StepStopSandboxes, Unit: "kubelet.service"})
	require.True(t, ok)
	assert.Equal(t, Step{Kind: StepRestartUnit, Unit: "kubelet.service"}, back)
}

// What cannot be undone says so, and every other step of a plan can be.
func TestEveryStepOfAPlanIsUndoneOrSaysWhyNot(t *testing.T) {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime = containerdAt("2.4.2")
	p := plan(t, PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: controlPlaneFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.2"}, []string{"2.4.2"})})
	for _, s := range p.Steps {
		_, ok := Inverse(s)
		switch s.Kind {
		case StepPreflight, StepVerify, StepSnapshotEtcd, StepGuardEtcd, StepMoveEtcdLeader:
			assert.False(t, ok, "%s changes nothing", s.Kind)
			assert.Empty(t, s.Irreversible)
		case StepKubeadmUpgrade:
			assert.False(t, ok)
			assert.Contains(t, s.Irreversible, "etcd")
		default:
			assert.True(t, ok, s.Kind)
			assert.Empty(t, s.Irreversible)
		}
	}
}
