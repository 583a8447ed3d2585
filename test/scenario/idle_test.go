package scenario

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

const (
	idleMiB          = 20 // resident
	idleRequestsHour = 4
	ticksASecond     = 100 // of /proc/PID/stat, on every Linux that Go knows
)

// resident is a program that runs on a host for as long as the host does.
type resident struct {
	name  string
	find  []string // prints the process id, on the host
	sends func(e *audit.Event, host string) bool
}

// The peer is a node agent that every cluster has, of the same language and made the
// ordinary way, with a full clientset and informers: kube-proxy. It watches more than
// one object, which is the point: it is what a host pays for such an agent.
var (
	refitAgent = resident{
		name: "refit-agent",
		find: []string{"systemctl", "show", "--property=MainPID", "--value", "refit-agent.service"},
		sends: func(e *audit.Event, host string) bool {
			return e.UserAgent == "refit-agent" && e.User.Username == "system:node:"+host
		},
	}
	kubeProxy = resident{
		name: "kube-proxy",
		find: []string{"pgrep", "-x", "kube-proxy"},
		sends: func(e *audit.Event, host string) bool {
			return e.User.Username == "system:serviceaccount:kube-system:kube-proxy" && e.Node() == host
		},
	}
)

// usage is what a process has used since it began, and holds now.
type usage struct {
	residentKiB, ticks, wakeUps int
}

// cost is what a resident program cost a host in a while.
type cost struct {
	host, program                         string
	residentMiB                           float64
	cpuSecondsHour, wakeUpsMinute, askedH float64
	asked                                 int
}

// TestAnIdleAgentCostsAHostAlmostNothing leaves a fleet alone for a while and reads what
// it cost from /proc and from the API servers' audit logs.
func TestAnIdleAgentCostsAHostAlmostNothing(t *testing.T) {
	window, err := time.ParseDuration(os.Getenv("REFIT_IDLE"))
	if err != nil {
		t.Skip("set REFIT_IDLE=10m (as root) to leave a real fleet alone for so long: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), window+30*time.Minute)
	defer cancel()
	env := costFleet(ctx, t)
	time.Sleep(time.Minute) // what adopting has set in motion comes to rest

	before := env.usages(ctx, t)
	units := env.unitsStarted(ctx, t)
	start := time.Now()
	time.Sleep(window)
	end := time.Now()
	after := env.usages(ctx, t)
	log, err := env.Fleet.AuditLog()
	require.NoError(t, err)
	requests := log.Between(start, end).Once()

	rows := env.costs(before, after, requests, end.Sub(start))
	t.Log("\n" + table(rows, window))
	for i := 0; i < len(rows); i += 2 {
		agent, peer := rows[i], rows[i+1]
		assert.LessOrEqual(t, agent.residentMiB, float64(idleMiB), "%s: MiB resident", agent.host)
		assert.Less(t, agent.residentMiB, peer.residentMiB, "%s: resident, against the peer", agent.host)
		assert.LessOrEqual(t, agent.cpuSecondsHour, peer.cpuSecondsHour, "%s: processor time, against the peer", agent.host)
		assert.Less(t, agent.wakeUpsMinute, peer.wakeUpsMinute, "%s: wake-ups, against the peer", agent.host)
		assert.LessOrEqual(t, agent.asked, 1+int(idleRequestsHour*end.Sub(start).Hours()), "%s: requests", agent.host)
	}
	assert.Equal(t, units, env.unitsStarted(ctx, t), "an idle agent starts nothing on its host")
	require.NotEmpty(t, requests, "the audit log has something in it")
}

// costFleet is a small fleet on which costs are measured.
func costFleet(ctx context.Context, t *testing.T) *Env {
	t.Helper()
	f, err := testfleet.Up(ctx, Options("cost", 2, os.Stderr))
	require.NoError(t, err)
	t.Cleanup(func() {
		if os.Getenv("REFIT_KEEP_FLEET") == "" {
			require.NoError(t, f.Down(context.Background()))
		}
	})
	env, err := Open(f, os.Stderr)
	require.NoError(t, err)
	require.NoError(t, env.Install(ctx))
	require.NoError(t, env.Adopt(ctx))
	return env
}

func (e *Env) usages(ctx context.Context, t *testing.T) map[string]usage {
	t.Helper()
	out := map[string]usage{}
	for _, h := range e.Fleet.Hosts() {
		for _, r := range []resident{refitAgent, kubeProxy} {
			pid, err := text(h.Exec(ctx, nil, r.find...))
			require.NoError(t, err)
			out[h.Name()+" "+r.name] = used(ctx, t, h, pid)
		}
	}
	return out
}

// used reads /proc, the switches of each thread included: a thread that waits and goes on was woken up.
func used(ctx context.Context, t *testing.T, h *testfleet.Host, pid string) usage {
	t.Helper()
	read := func(argv ...string) []byte {
		out, err := h.Exec(ctx, nil, argv...)
		require.NoError(t, err)
		return out
	}
	stat := string(read("cat", "/proc/"+pid+"/stat"))
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	require.Greater(t, len(fields), 12)
	u := usage{ticks: number(t, fields[11]) + number(t, fields[12])}
	u.residentKiB = sum(t, read("cat", "/proc/"+pid+"/status"), "VmRSS:")
	u.wakeUps = sum(t, read("find", "/proc/"+pid+"/task", "-mindepth", "2", "-maxdepth", "2", "-name", "status", "-exec", "cat", "{}", ";"), "voluntary_ctxt_switches:")
	require.Positive(t, u.residentKiB)
	require.Positive(t, u.wakeUps)
	return u
}

func sum(t *testing.T, status []byte, key string) int {
	t.Helper()
	total := 0
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), key); ok {
			total += number(t, strings.Fields(rest)[0])
		}
	}
	return total
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// unitsStarted counts what Refit ever had systemd start on the hosts, such as a probe.
func (e *Env) unitsStarted(ctx context.Context, t *testing.T) int {
	t.Helper()
	n := 0
	for _, h := range e.Fleet.Hosts() {
		out, err := h.Exec(ctx, nil, "journalctl", "--no-pager", "--output=cat", "--quiet", "_PID=1", "--boot")
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "Started refit-") || strings.HasPrefix(line, "Starting refit-") {
				n++
			}
		}
	}
	return n
}

func (e *Env) costs(before, after map[string]usage, requests audit.Log, took time.Duration) []cost {
	var rows []cost
	for _, h := range e.Fleet.Hosts() {
		for _, r := range []resident{refitAgent, kubeProxy} {
			key := h.Name() + " " + r.name
			b, a := before[key], after[key]
			c := cost{host: h.Name(), program: r.name, residentMiB: float64(a.residentKiB) / 1024}
			c.cpuSecondsHour = float64(a.ticks-b.ticks) / ticksASecond / took.Hours()
			c.wakeUpsMinute = float64(a.wakeUps-b.wakeUps) / took.Minutes()
			for i := range requests {
				if r.sends(&requests[i], h.Name()) {
					c.asked++
				}
			}
			c.askedH = float64(c.asked) / took.Hours()
			rows = append(rows, c)
		}
	}
	return rows
}

func table(rows []cost, window time.Duration) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "HOST\tPROGRAM\tRESIDENT MiB\tCPU s/h\tWAKE-UPS/min\tREQUESTS/h\tREQUESTS in %s\n", window)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.2f\t%.1f\t%.1f\t%d\n", r.host, r.program, r.residentMiB, r.cpuSecondsHour, r.wakeUpsMinute, r.askedH, r.asked)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}
