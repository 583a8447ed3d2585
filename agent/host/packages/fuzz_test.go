package packages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/osrelease"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Whatever os-release says, a host is one that is known or one that is left alone.
func FuzzOSRelease(f *testing.F) {
	for _, seed := range []string{
		"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n",
		"NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\n",
		"NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\n",
		"NAME=\"openSUSE Leap\"\nID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"\n",
		"NAME=\"SLES\"\nID=\"sles\"\nID_LIKE=\"suse\"\nVERSION_ID=\"15.5\"\n",
		"NAME=\"Alpine Linux\"\nID=alpine\n", "ID=\nID_LIKE=\"debian rhel\"\n", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, "etc/os-release"), data, 0o600))
		release, err := osrelease.Read(root)
		require.NoError(t, err)
		m := Of(root)
		require.NotEmpty(t, m.StageDir())
		if release.Family != "" {
			require.Contains(t, []string{"apt", "dnf", "zypper"}, release.Family)
			return
		}
		var blocked *upgrade.Blocked
		require.ErrorAs(t, m.Install(t.Context(), nil, ""), &blocked)
		require.Equal(t, upgrade.ReasonUnsupportedOS, blocked.Reason)
	})
}
