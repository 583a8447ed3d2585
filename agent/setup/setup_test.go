package setup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/store"
)

func TestAHoldFileIsSeenOnAHostThatHadNoConfigurationDirectory(t *testing.T) {
	paths := PathsUnder(t.TempDir())
	state := store.New(paths.State)
	require.NoError(t, state.MakeDirs())
	require.NoDirExists(t, paths.Etc)
	events, err := fileEvents(t.Context(), state, paths)
	require.NoError(t, err)

	hold := filepath.Join(paths.Etc, "hold")
	require.NoError(t, os.WriteFile(hold, []byte("not today"), 0o600))
	select {
	case path := <-events:
		assert.Equal(t, hold, path)
	case <-time.After(10 * time.Second):
		t.Fatal("the hold file was made and nothing was said of it")
	}
}
