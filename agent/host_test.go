package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent"
)

func TestConfigurationHasDefaultsAndRefusesWhatItDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	config, err := agent.LoadConfig(path)
	require.NoError(t, err, "no file stands for the defaults")
	assert.Equal(t, agent.Config{Kubeconfig: "/etc/kubernetes/kubelet.conf", Namespace: "refit"}, config)

	require.NoError(t, os.WriteFile(path, []byte("namespace: cluster-7\nmachine: w1\n"), 0o600))
	config, err = agent.LoadConfig(path)
	require.NoError(t, err)
	assert.Equal(t, agent.Config{Kubeconfig: "/etc/kubernetes/kubelet.conf", Namespace: "cluster-7", Machine: "w1"}, config)

	require.NoError(t, os.WriteFile(path, []byte("namspace: cluster-7\n"), 0o600))
	_, err = agent.LoadConfig(path)
	require.ErrorContains(t, err, "namspace")
	require.ErrorContains(t, err, path)
}

func TestHoldOfTheOwnerIsReadAndDoubtIsAVeto(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hold")
	hold := agent.HoldFile(path)
	assert.Nil(t, hold())
	require.NoError(t, os.WriteFile(path, []byte("disk swap until Friday\n"), 0o600))
	require.NotNil(t, hold())
	assert.Equal(t, "disk swap until Friday", hold().Message)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	assert.NotNil(t, hold(), "what cannot be read holds")
}

func TestFileEventsNameWhatChangedAndNotTheScratchBesideIt(t *testing.T) {
	dir := t.TempDir()
	events, err := agent.FileEvents(t.Context(), dir, filepath.Join(dir, "missing"))
	require.NoError(t, err, "a directory that is not there is left out")
	scratch, record := filepath.Join(dir, ".g1.tmp"), filepath.Join(dir, "g1.json")
	require.NoError(t, os.WriteFile(scratch, nil, 0o600))
	require.NoError(t, os.Rename(scratch, record))
	select {
	case path := <-events:
		assert.Equal(t, record, path)
	case <-time.After(5 * time.Second):
		t.Fatal("no event came")
	}
}

// Newer hosts have rpm's database under /usr, and a link to it where it was.
func TestADirectoryThatIsNamedTwiceIsWatchedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rpm")
	require.NoError(t, os.Mkdir(dir, 0o755))
	link := filepath.Join(t.TempDir(), "rpm")
	require.NoError(t, os.Symlink(dir, link))
	for _, dirs := range [][]string{{link, dir}, {dir, link}} {
		events, err := agent.FileEvents(t.Context(), dirs...)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "rpmdb.sqlite"), []byte("x"), 0o600))
		select {
		case path := <-events:
			assert.True(t, agent.PackageDatabase(path), path)
		case <-time.After(20 * time.Second):
			t.Fatal("no event came")
		}
	}
}

func TestPackageDatabases(t *testing.T) {
	assert.True(t, agent.PackageDatabase("/var/lib/dpkg/status"))
	assert.True(t, agent.PackageDatabase("/var/lib/rpm/rpmdb.sqlite"))
	assert.True(t, agent.PackageDatabase("/usr/lib/sysimage/rpm/rpmdb.sqlite"))
	assert.True(t, agent.PackageDatabase("/usr/lib/sysimage/rpm/Packages.db"))
	assert.False(t, agent.PackageDatabase("/usr/lib/sysimage/rpm/Index.db"))
	assert.Contains(t, agent.HostDirs("/"), "/usr/lib/sysimage/rpm")
	assert.False(t, agent.PackageDatabase("/var/lib/dpkg/status-old"))
	assert.False(t, agent.PackageDatabase("/var/lib/refit/journal/status"))
}
