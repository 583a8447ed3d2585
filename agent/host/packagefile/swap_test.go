package packagefile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Between staging and use a file is exchanged: by another content, or by a link to a file
// of the right content, which could be another one a moment later.
func TestAPackageThatWasExchangedAfterItWasStagedIsNotUsed(t *testing.T) {
	content := []byte("package")
	sum := sha256.Sum256(content)
	change := upgrade.PackageChange{Name: "a", To: "1", File: "a.deb", SHA256: hex.EncodeToString(sum[:])}
	for name, exchange := range map[string]func(t *testing.T, path string){
		"by another": func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("evil"), 0o644)) },
		"by a link to itself": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".moved"))
			require.NoError(t, os.Symlink(path+".moved", path))
		},
		"by a link that leads out": func(t *testing.T, path string) {
			out := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.Rename(path, out))
			require.NoError(t, os.Symlink(out, path))
		},
		"by a directory": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, change.File)
			require.NoError(t, os.WriteFile(path, content, 0o644))
			s := Store{StageDir: dir, Label: func(context.Context, string) (string, string, error) { return "a", "1", nil }}
			require.NoError(t, s.Verify(t.Context(), []upgrade.PackageChange{change}, dir))
			exchange(t, path)
			err := s.Verify(t.Context(), []upgrade.PackageChange{change}, dir)
			blocked := upgrade.IsBlocked(err)
			require.NotNil(t, blocked, "%v", err)
			assert.Equal(t, "DigestMismatch", blocked.Reason)
		})
	}
}
