package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/systemd"
)

// manager records what it is asked, and fails on demand.
type manager struct {
	calls   []string
	enabled bool
	fail    string
}

func (m *manager) do(call string) error {
	m.calls = append(m.calls, call)
	if m.fail == call {
		return errors.New("no bus")
	}
	return nil
}

func (m *manager) Status(context.Context, string) (systemd.Status, error) {
	return systemd.Status{FileState: map[bool]string{true: "enabled", false: "disabled"}[m.enabled]}, m.do("status")
}
func (m *manager) Reload(context.Context) error { return m.do("reload") }
func (m *manager) Enable(context.Context, string) error {
	err := m.do("enable")
	m.enabled = m.enabled || err == nil
	return err
}
func (m *manager) Disable(context.Context, string) error { m.enabled = false; return m.do("disable") }

func world(t *testing.T) (Host, *manager, string) {
	t.Helper()
	root, m := t.TempDir(), &manager{}
	for _, dir := range []string{"usr/local/bin", "etc/systemd/system"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	source := filepath.Join(t.TempDir(), "refit-executor")
	require.NoError(t, os.WriteFile(source, []byte("new"), 0o755))
	return Host{Root: root, Units: m}, m, source
}

func TestTheExecutorAndItsUnitAreInstalledOnce(t *testing.T) {
	h, m, source := world(t)
	changed, err := h.Install(t.Context(), source)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, []string{"reload", "status", "enable", "reload"}, m.calls)
	unit, err := os.ReadFile(filepath.Join(h.Root, "etc/systemd/system/refit-resume.service"))
	require.NoError(t, err)
	assert.Contains(t, string(unit), "ExecStart=/usr/local/bin/refit-executor resume\n")
	assert.NotContains(t, string(unit), "/usr/bin/")

	m.calls = nil
	changed, err = h.Install(t.Context(), source)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Equal(t, []string{"status"}, m.calls, "a host that has all is left alone")
}

func TestAnExecutorThatIsNotTheImagesIsReplaced(t *testing.T) {
	for name, there := range map[string]string{"an older one": "old", "one that was cut short": "ne", "an empty one": ""} {
		t.Run(name, func(t *testing.T) {
			h, _, source := world(t)
			target := filepath.Join(h.Root, Program)
			require.NoError(t, os.WriteFile(target, []byte(there), 0o600))
			running, err := os.Open(target)
			require.NoError(t, err)
			defer running.Close()
			changed, err := h.Install(t.Context(), source)
			require.NoError(t, err)
			assert.True(t, changed)
			now, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.Equal(t, "new", string(now))
			info, err := os.Stat(target)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o755), info.Mode().Perm())
			before, after := stat(t, running), info
			assert.False(t, os.SameFile(before, after), "one that runs keeps its own file")
		})
	}
}

func stat(t *testing.T, f *os.File) os.FileInfo {
	t.Helper()
	info, err := f.Stat()
	require.NoError(t, err)
	return info
}

// Whatever fails, the next start puts it right.
func TestAnInstallationThatBrokeOffIsFinishedAtTheNextStart(t *testing.T) {
	for _, at := range []string{"reload", "status", "enable"} {
		t.Run(at, func(t *testing.T) {
			h, m, source := world(t)
			m.fail = at
			_, err := h.Install(t.Context(), source)
			require.Error(t, err)
			m.fail = ""
			_, err = h.Install(t.Context(), source)
			require.NoError(t, err)
			assert.True(t, m.enabled)
		})
	}
}

func TestNothingIsLeftOfBothAfterTheyAreRemoved(t *testing.T) {
	h, m, source := world(t)
	_, err := h.Install(t.Context(), source)
	require.NoError(t, err)
	require.NoError(t, h.Remove(t.Context()))
	assert.False(t, m.enabled)
	for _, dir := range []string{"usr/local/bin", "etc/systemd/system"} {
		entries, err := os.ReadDir(filepath.Join(h.Root, dir))
		require.NoError(t, err)
		assert.Empty(t, entries, dir)
	}
	require.NoError(t, h.Remove(t.Context()), "removing twice")
}
