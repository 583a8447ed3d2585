package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNoTwoFleetsShareAnAddress(t *testing.T) {
	var nets []string
	for i := range MaxSites {
		s := Site{Index: i}
		nets = append(nets, s.Subnet().String(), s.PodSubnet().String())
		for j := range i {
			o := Site{Index: j}
			assert.False(t, s.Subnet().Overlaps(o.Subnet()) || s.PodSubnet().Overlaps(o.PodSubnet()))
		}
		assert.False(t, s.Subnet().Overlaps(s.PodSubnet()))
		assert.False(t, s.ServiceSubnet().Overlaps(s.Subnet()) || s.ServiceSubnet().Overlaps(s.PodSubnet()))
	}
	assert.Contains(t, nets, "10.249.0.0/24")
	assert.Contains(t, nets, "10.149.0.0/16")
}

func TestHostAddressesFollowFromIndexAndNumber(t *testing.T) {
	h := Host{Site: Site{Index: 7, Dir: "/state/demo"}, Name: "worker-1", Number: 101}
	assert.Equal(t, "10.207.0.1", h.Site.Gateway().String())
	assert.Equal(t, "10.207.0.101", h.Address().String())
	assert.Equal(t, "10.107.101.0/24", h.PodSubnet().String())
	assert.True(t, h.Site.PodSubnet().Contains(h.PodSubnet().Addr()))
	assert.Equal(t, "/state/demo/hosts/worker-1/root", h.RootDir())
}

func TestMountsBelowADirectoryAreFound(t *testing.T) {
	const info = `22 1 0:20 / / rw - ext4 /dev/vda rw
60 22 0:50 / /state/demo/hosts/a/root rw - overlay overlay rw
61 60 0:51 / /state/demo/hosts/a/root/var/lib/kubelet rw - ext4 /dev/vda rw
62 22 0:52 / /state/demo\040two/root rw - overlay overlay rw
63 22 0:53 / /state/demo-other/root rw - overlay overlay rw
broken
`
	assert.Equal(t, []string{"/state/demo/hosts/a/root", "/state/demo/hosts/a/root/var/lib/kubelet"}, parseMounts(info, "/state/demo"))
	assert.Equal(t, []string{"/state/demo two/root"}, parseMounts(info, "/state/demo two"))
	assert.Empty(t, parseMounts(info, "/elsewhere"))
}

func TestCgroupHierarchiesAreReadFromTheMounts(t *testing.T) {
	v1 := parseHierarchies(`tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
cgroup /elsewhere/memory cgroup rw,memory 0 0
`)
	require.Len(t, v1, 4)
	assert.Equal(t, "/sys/fs/cgroup/cpu,cpuacct", v1[0].dir)
	assert.Contains(t, v1[1].controllers, "cpuset")
	assert.True(t, v1[3].v2)

	v2 := parseHierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n")
	require.Len(t, v2, 1)
	assert.True(t, v2[0].v2)
}

func TestOnlyOneHolderHasALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "lock")
	unlock, err := TryLock(path)
	require.NoError(t, err)
	_, err = TryLock(path)
	require.ErrorIs(t, err, ErrLocked)
	unlock()
	again, err := Lock(t.Context(), path)
	require.NoError(t, err)
	again()
}

func TestAHostThatIsOffSaysSo(t *testing.T) {
	h := Host{Site: Site{Index: MaxSites + 1, Dir: t.TempDir()}, Name: "cp-1"} // an index that no fleet has
	_, err := h.Exec(t.Context(), nil, "true")
	require.ErrorIs(t, err, ErrOff)
	assert.ErrorContains(t, err, `"true" on cp-1`)
	assert.False(t, h.Running())
}

func TestCopyInReplacesTheFileAndSetsItsMode(t *testing.T) {
	h := Host{Site: Site{Dir: t.TempDir()}, Name: "cp-1"}
	require.NoError(t, h.WriteFile("/etc/refit/hold", []byte("old"), 0o600))
	src := filepath.Join(t.TempDir(), "new")
	require.NoError(t, os.WriteFile(src, []byte("new"), 0o644))

	require.NoError(t, h.CopyIn(t.Context(), src, "/etc/refit/hold", 0o755))

	target := filepath.Join(h.RootDir(), "etc/refit/hold")
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "new", string(data))
	info, err := os.Stat(target)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
	assert.NoFileExists(t, target+".incoming")
}

func TestTheEndOfALongOutputIsKept(t *testing.T) {
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'x'
	}
	got := tail(append(long, []byte("the reason\n")...))
	assert.Less(t, len(got), 2100)
	assert.Contains(t, got, "the reason")
	assert.Equal(t, "short", tail([]byte(" short\n")))
}

func TestTheFirstThreadIsNeverThrownAway(t *testing.T) {
	runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(runtime.NumCPU()) })
	for range 200 {
		require.NoError(t, onThrowawayThread(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("this is the first thread")
			}
			return nil
		}))
	}
}
