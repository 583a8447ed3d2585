package apt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// fill puts Refit's directory onto a file system of its own with some bytes left.
func (h *host) fill(left int64) {
	h.t.Helper()
	dir := h.path("var/lib/refit")
	require.NoError(h.t, os.MkdirAll(dir, 0o755))
	const size = 1 << 20
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		h.t.Skipf("needs the right to mount: %v", err)
	}
	h.t.Cleanup(func() { require.NoError(h.t, unix.Unmount(dir, unix.MNT_DETACH)) })
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, size-left), 0o600))
}

// Wherever the disk becomes full, in our own files or in those of apt, it is that which is said.
func TestAFullDiskIsNoFaultOfARepository(t *testing.T) {
	for _, left := range []int64{0, 4 << 10, 32 << 10, 48 << 10, 64 << 10, 96 << 10} {
		t.Run(fmt.Sprintf("%d KiB left", left>>10), func(t *testing.T) {
			h := newHost(t)
			h.trust("kubernetes")
			r := newRepository(t, deb{name: "kubelet", version: "1"})
			packages, err := os.ReadFile(filepath.Join(r.dir, "Packages"))
			require.NoError(t, err)
			long := string(packages) + "\n" + strings.Repeat("Package: filler\nVersion: 1\nArchitecture: all\nDescription: "+strings.Repeat("x", 200)+"\n\n", 4000)
			r.write("Packages", long)
			r.sign(long)
			h.fill(left)
			_, err = h.Candidates(t.Context(), request(r.uri()))
			require.Error(t, err)
			reason := ""
			var blocked *upgrade.Blocked
			if errors.As(err, &blocked) {
				reason = blocked.Reason
			} else if full := files.NoSpace(err); full != nil {
				reason = full.Reason
			}
			assert.Equal(t, "NoSpace", reason, err)
		})
	}
}
