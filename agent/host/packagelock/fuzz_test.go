package packagelock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lock file that names a process is read whatever is in it; this test is no program that
// manages packages, nor is a process that does not exist.
func FuzzNamedProcess(f *testing.F) {
	for _, seed := range []string{"2448\n", "1", "0", "-1", "", "x", "99999999999999999999", " 7 8", "4294967297", "1\x00", "+1", "/../self"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		for _, file := range pidFiles {
			path := filepath.Join(root, file.path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
		holder, err := Holder(root)
		require.NoError(t, err)
		if holder != nil { // a process of this machine may well have that number
			require.Positive(t, holder.PID)
			require.Contains(t, holder.Path, root)
		}
	})
}
