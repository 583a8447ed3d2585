package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAStepSaysWhatItDoesAndOnWhat(t *testing.T) {
	file := FileChange{Path: "/etc/kubernetes/kubelet.conf.d/50-refit.conf", Content: "a"}
	gone := file
	gone.Remove = true
	for want, step := range map[string]Step{
		"WriteConfig: /etc/kubernetes/kubelet.conf.d/50-refit.conf":        {Kind: StepWriteConfig, File: &file},
		"WriteConfig: remove /etc/kubernetes/kubelet.conf.d/50-refit.conf": {Kind: StepWriteConfig, File: &gone},
		"InstallPackages: a 2, remove b":                                   {Kind: StepInstallPackages, Packages: []PackageChange{{Name: "a", To: "2"}, {Name: "b"}}},
		"HoldPackages: a, b":                                               {Kind: StepHoldPackages, Packages: []PackageChange{{Name: "a"}, {Name: "b"}}},
		"RestartUnit: kubelet.service":                                     {Kind: StepRestartUnit, Unit: "kubelet.service"},
		"Verify":                                                           {Kind: StepVerify, Expect: &Expectation{Kubelet: "v1.37.2"}},
	} {
		assert.Equal(t, want, step.Describe())
	}
}

func TestANumberHasTheWordThatGoesWithIt(t *testing.T) {
	assert.Equal(t, []string{"0 pods", "1 pod", "2 pods"}, []string{Count(0, "pod", "pods"), Count(1, "pod", "pods"), Count(2, "pod", "pods")})
}
