package apt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const history = `
Start-Date: 2026-11-28  10:00:00
Commandline: apt-get install -y containerd.io=1.7.18-1
Install: runc:amd64 (1.1.12, automatic), containerd.io:amd64 (1.7.18-1)
End-Date: 2026-11-28  10:00:05

Start-Date: 2026-11-29  06:12:01
Commandline: /usr/bin/unattended-upgrade
Upgrade: containerd.io:amd64 (1.7.18-1, 1.7.19-1), openssl:amd64 (3.0.14-1, 3.0.15-1)
End-Date: 2026-11-29  06:12:05

Start-Date: 2026-11-30  09:01:02
Commandline: apt install kubelet=1.30.5-1.1
Requested-By: alice (1000)
Upgrade: kubelet:amd64 (1.30.4-1.1, 1.30.5-1.1)
`

// B21, B76: drift has a culprit, and apt's log knows it.
func TestTheLogNamesWhoBroughtWhatIsInstalled(t *testing.T) {
	a := New(t.TempDir())
	installed := []upgrade.InstalledPackage{
		{Name: "containerd.io", Version: "1.7.19-1"}, {Name: "kubelet", Version: "1.30.5-1.1"}, {Name: "runc", Version: "1.1.12"},
		{Name: "openssl", Version: "3.0.16-1"}, {Name: "kubeadm", Version: "1.30.4-1.1"},
	}
	by, err := a.ChangedBy(installed)
	require.NoError(t, err, "a host without the log")
	assert.Empty(t, by)

	path := filepath.Join(a.Root, historyLog)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(history), 0o644))
	by, err = a.ChangedBy(installed)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"containerd.io": "/usr/bin/unattended-upgrade, at 2026-11-29 06:12:01 by the host's clock",
		"kubelet":       "apt install kubelet=1.30.5-1.1, requested by alice (1000), at 2026-11-30 09:01:02 by the host's clock",
		"runc":          "apt-get install -y containerd.io=1.7.18-1, at 2026-11-28 10:00:00 by the host's clock",
	}, by, "openssl was changed by something else since: whoever brought the older one is not blamed")
}

func TestALogThatIsLongOrOddHurtsNobody(t *testing.T) {
	a := New(t.TempDir())
	path := filepath.Join(a.Root, historyLog)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	long := strings.Repeat("Start-Date: x\nUpgrade: (((:, kubelet (\n\n", 60_000) + history +
		"\nCommandline: apt\x1b[31m -o Acquire::http::Proxy=http://me:secret@proxy/ " + strings.Repeat("x", 5000) + "\nInstall: kubeadm:amd64 (1.30.4-1.1)\n"
	require.NoError(t, os.WriteFile(path, []byte(long), 0o644))
	by, err := a.ChangedBy([]upgrade.InstalledPackage{{Name: "kubelet", Version: "1.30.5-1.1"}, {Name: "kubeadm", Version: "1.30.4-1.1"}})
	require.NoError(t, err)
	assert.Contains(t, by["kubelet"], "alice")
	assert.LessOrEqual(t, len(by["kubeadm"]), 240)
	assert.NotContains(t, by["kubeadm"], "\x1b")
	assert.NotContains(t, by["kubeadm"], "secret")
}
