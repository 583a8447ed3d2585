package scale

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// clockTick of /proc: Linux has shown 100 in a second to programs since ever.
const clockTick = 10 * time.Millisecond

// cpu is what the coordinator has used of CPUs so far.
func (w *fleetWorld) cpu() time.Duration { return w.cpuOf(w.coordinator.Process.Pid) }

// usage is what each process has used of CPUs so far; the hosts are this one's.
type usage struct{ coordinator, apiserver, etcd, hosts time.Duration }

func (w *fleetWorld) usage() usage {
	apiserver, etcd := w.server.Processes()
	return usage{w.cpu(), w.cpuOf(apiserver), w.cpuOf(etcd), w.cpuOf(os.Getpid())}
}

func (u usage) since(before usage) usage {
	return usage{u.coordinator - before.coordinator, u.apiserver - before.apiserver, u.etcd - before.etcd, u.hosts - before.hosts}
}

// load is what the machine says of how busy it is.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// cpuOf is what a process has used of CPUs so far.
func (w *fleetWorld) cpuOf(pid int) time.Duration {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(w.t, err)
	_, rest, found := strings.Cut(string(text), ") ")
	require.True(w.t, found)
	fields := strings.Fields(rest)
	const user, system = 11, 12 // utime and stime, counted from the field after the name
	ticks := 0
	for _, f := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(f)
		require.NoError(w.t, err)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

// memory is a line of the coordinator's /proc/PID/status, in MiB: VmRSS, or VmHWM for the most it has had.
func (w *fleetWorld) memory(line string) float64 {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.coordinator.Process.Pid))
	require.NoError(w.t, err)
	for l := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(l, line+":"); is {
			var kib float64
			_, err := fmt.Sscan(rest, &kib)
			require.NoError(w.t, err)
			return kib / 1024
		}
	}
	return 0
}
