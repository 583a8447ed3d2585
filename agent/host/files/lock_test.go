package files_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/files"
)

func TestALockHasOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "lock")
	release, err := files.Lock(path)
	require.NoError(t, err)
	_, err = files.Lock(path)
	require.ErrorIs(t, err, files.ErrLocked)
	assert.ErrorContains(t, err, path)
	release()
	release, err = files.Lock(path)
	require.NoError(t, err, "the file that stays means nothing")
	release()
}
