package files

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	r := Rooted{t.TempDir()}
	_, _, err := r.Read("/etc/x/y")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, r.Write("/etc/x/y", []byte("a"), 0o640))
	content, mode, err := r.Read("/etc/x/y")
	require.NoError(t, err)
	assert.Equal(t, "a", string(content))
	assert.Equal(t, fs.FileMode(0o640), mode)
	digest, err := r.Digest("/etc/x/y")
	require.NoError(t, err)
	assert.Equal(t, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", digest)
	require.NoError(t, r.Remove("/etc/x/y"))
	require.NoError(t, r.Remove("/etc/x/y"), "one that is not there is fine")
}
