package packages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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
	for _, suse := range []string{
		"ID=sles\n", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n",
		"ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\n", "ID=\"sl-micro\"\nID_LIKE=\"suse\"\n",
	} {
		m := hostOf(t, suse)
		assert.IsType(t, &rpm.RPM{}, m, suse)
		assertZypper(t, m)
	}
}

// assertZypper tells the families of rpm apart by the files that they write.
func assertZypper(t *testing.T, m Manager) {
	t.Helper()
	err := m.Switch(t.Context(), upgrade.SourceChange{File: "/etc/yum.repos.d/x.repo", From: "http://a/", To: "http://b/"})
	assert.ErrorContains(t, err, "want a .repo file in /etc/zypp/repos.d")
}

// A transactional system has a read-only root: nothing is planned on it, whatever its family.
func TestAHostWithAReadOnlyUsrIsRefused(t *testing.T) {
	root := t.TempDir()
	usr := filepath.Join(root, "usr")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	require.NoError(t, os.Mkdir(usr, 0o755))
	for _, id := range []string{"opensuse-microos\nID_LIKE=\"suse opensuse\"", "fedora", "debian"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "etc/os-release"), []byte("ID="+id+"\n"), 0o644))
		_, refused := Of(root).(*unsupported)
		assert.False(t, refused, "one that can be written to is served")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	if err := unix.Mount("tmpfs", usr, "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Skip("no mount can be made here: ", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(usr, 0)) })
	for _, id := range []string{"opensuse-microos\nID_LIKE=\"suse opensuse\"", "fedora", "debian"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "etc/os-release"), []byte("ID="+id+"\n"), 0o644))
		_, err := Of(root).Query(t.Context(), []string{"kubelet"})
		var blocked *upgrade.Blocked
		require.ErrorAs(t, err, &blocked)
		assert.Equal(t, upgrade.ReasonUnsupportedOS, blocked.Reason)
		assert.Contains(t, blocked.Message, "its /usr is read-only")
		assert.Contains(t, blocked.Message, "transactional-update")
	}
}

// B24: on a system that is not known nothing is done, and that is said.
func TestOnAnotherSystemEverythingIsRefused(t *testing.T) {
	for name, m := range map[string]Manager{
		"unknown":       hostOf(t, "ID=alpine\n"),
		"no os-release": Of(t.TempDir()),
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
