package packages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/apt"
	"github.com/refit-dev/refit/agent/host/rpm"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func hostOf(t *testing.T, release string) Manager {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/os-release"), []byte(release), 0o644))
	return Of(root)
}

func TestTheSystemDecidesWhoManagesPackages(t *testing.T) {
	assert.IsType(t, &apt.Apt{}, hostOf(t, "ID=ubuntu\nID_LIKE=debian\n"))
	assert.IsType(t, &rpm.RPM{}, hostOf(t, "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"))
}

// B24: on a system that is not known nothing is done, and that is said.
func TestOnAnotherSystemEverythingIsRefused(t *testing.T) {
	for name, m := range map[string]Manager{
		"unknown":       hostOf(t, "ID=alpine\n"),
		"no os-release": Of(t.TempDir()),
		"zypper":        hostOf(t, "ID=sles\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, query := m.Query(t.Context(), []string{"kubelet"})
			_, candidates := m.Candidates(t.Context(), upgrade.CandidateRequest{})
			_, stage := m.Stage(t.Context(), nil)
			for _, err := range []error{query, candidates, stage, m.Install(t.Context(), nil, ""), m.Repair(t.Context()), m.SetHold(t.Context(), nil, true)} {
				var blocked *upgrade.Blocked
				require.ErrorAs(t, err, &blocked)
				assert.Equal(t, upgrade.ReasonUnsupportedOS, blocked.Reason)
				assert.True(t, blocked.Terminal)
			}
		})
	}
}
