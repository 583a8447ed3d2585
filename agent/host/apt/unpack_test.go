package apt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestAStagedPackageCanBeLookedIntoWithoutInstallingIt(t *testing.T) {
	h := newHost(t)
	r := newRepository(t, deb{
		name: "kubeadm", version: "1.37.2-1.1", files: map[string]string{"usr/bin/kubeadm": "new"},
		scripts: map[string]string{"preinst": "#!/bin/sh\ntouch \"$DPKG_ROOT/ran\"\n"},
	})
	c := change(h.candidates(r, "kubeadm")["kubeadm 1.37.2-1.1"], "")
	_, err := h.Stage(t.Context(), []upgrade.PackageChange{c})
	require.NoError(t, err)
	for range 2 {
		dir, _, err := h.Unpack(t.Context(), c)
		require.NoError(t, err, "what a crash left there is no obstacle")
		text, err := os.ReadFile(filepath.Join(dir, "usr/bin/kubeadm"))
		require.NoError(t, err)
		assert.Equal(t, "new", string(text))
		info, err := os.Stat(filepath.Dir(dir))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	_, remove, err := h.Unpack(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, remove())
	entries, err := os.ReadDir(h.StageDir())
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, c.File, entries[0].Name())
	assert.NoFileExists(t, h.path("ran"))
	assert.Empty(t, h.versions("kubeadm"))

	require.NoError(t, os.WriteFile(filepath.Join(h.StageDir(), c.File), []byte("other"), 0o644))
	_, _, err = h.Unpack(t.Context(), c)
	assertReason(t, err, "DigestMismatch")
}
