package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAKubeadmThatIsKnownToBreakAnUpgradeIsNeitherRunNorChosen(t *testing.T) {
	for version, bad := range map[string]bool{"v1.27.16": false, "v1.28.0": true, "v1.28.2": true, "v1.28.3": false, "v1.37.2": false} {
		run := Step{Kind: StepKubeadmUpgrade, Kubeadm: &KubeadmUpgrade{Version: version, ControlPlane: true}}
		found := knownBadRelease(&planner{steps: []Step{run}})
		if !bad {
			assert.Empty(t, found, version)
			continue
		}
		require.Len(t, found, 1, version)
		assert.Equal(t, SeverityError, found[0].Severity)
		assert.Contains(t, found[0].Message, "set spec.versions.controlPlane to v1.28.3 or newer")
	}
	good, _ := ParseKubernetes("v1.27.16")
	broken, _ := ParseKubernetes("v1.28.1")
	assert.Equal(t, "v1.27.16", commonRelease([][]Version{{good, broken}}))
	assert.Empty(t, commonRelease([][]Version{{broken}}), "no release of that minor is better than one that breaks")
}

func TestAWorkersKubeadmIsNotJudgedByWhatItDoesToAControlPlane(t *testing.T) {
	run := Step{Kind: StepKubeadmUpgrade, Kubeadm: &KubeadmUpgrade{Version: "v1.28.1"}}
	assert.Empty(t, knownBadRelease(&planner{steps: []Step{run}}))
}
