package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/binding"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestAHostDoesNotLeaveAtWork(t *testing.T) {
	paths := PathsUnder(t.TempDir())
	require.NoError(t, mayLeave(paths), "a host that never had an agent")

	release, err := alone(t.Context(), paths)
	require.NoError(t, err)
	require.ErrorContains(t, mayLeave(paths), "systemctl stop refit-agent")
	release()
	require.NoError(t, mayLeave(paths))

	require.NoError(t, store.New(paths.State).SaveOperation(upgrade.Operation{ID: "g1"}))
	require.ErrorContains(t, mayLeave(paths), "operation g1 has no outcome yet")
}

// The kubeconfig of a host is replaced, such as by kubeadm reset and join: its agent waits, and says why.
func TestAHostThatWasMovedWaitsUntilItHasLeft(t *testing.T) {
	paths := PathsUnder(t.TempDir())
	home := binding.Place{Server: "https://a", Authorities: []string{"1"}, Namespace: "refit", Machine: "w1"}
	require.NoError(t, binding.Bind(paths.State, home))
	away := home
	away.Server, away.Authorities = "https://b", []string{"2"}
	var other *binding.OtherError
	require.ErrorAs(t, binding.Check(paths.State, away), &other)

	config := filepath.Join(paths.Etc, "agent.yaml")
	require.NoError(t, os.MkdirAll(paths.Etc, 0o755))
	if os.Geteuid() != 0 {
		_, err := Leave(t.Context(), config, paths, Leaving{})
		require.ErrorContains(t, err, "only root")
		return
	}
	was, err := Leave(t.Context(), config, paths, Leaving{})
	require.NoError(t, err)
	assert.Equal(t, home, *was)
	require.NoError(t, binding.Bind(paths.State, away))
	require.NoError(t, os.WriteFile(filepath.Join(paths.State, "journal"), []byte("x"), 0o600))
	_, err = Leave(t.Context(), config, paths, Leaving{Record: true})
	require.NoError(t, err)
	assert.NoDirExists(t, paths.State)
	assert.NoDirExists(t, paths.Run)
}
