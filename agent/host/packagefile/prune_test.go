package packagefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheOldestFilesGoWhenThereAreTooMany(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for i := range 5 {
		path := filepath.Join(dir, fmt.Sprintf("%d.deb", i))
		require.NoError(t, os.WriteFile(path, make([]byte, 100), 0o600))
		at := now.Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, RemoveUnneeded(dir, now.Add(-time.Hour), 250, map[string]bool{"0.deb": true}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"0.deb", "3.deb", "4.deb"}, names, "what is needed stays however old it is")
}
