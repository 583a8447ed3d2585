package scale

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fakehost"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const (
	machinesByDefault = 5000
	slotsByDefault    = "10%" // of the machines that are rolled
	untouchedPart     = 20    // one machine in so many is of a pool that is not rolled
	mostOneAtATime    = 20    // machines that go one at a time, before the budget is widened
	mostWrites        = 8     // of the coordinator, for each machine of a rollout
)

func fleetSize(t *testing.T) int {
	t.Helper()
	text := os.Getenv("REFIT_SCALE_MACHINES")
	if text == "" {
		return machinesByDefault
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// atOnce is how many machines of so many go at once: REFIT_SCALE_SLOTS, a number or a percentage.
func atOnce(t *testing.T, rolled int) (most intstr.IntOrString, count int) {
	t.Helper()
	most = intstr.Parse(cmp.Or(os.Getenv("REFIT_SCALE_SLOTS"), slotsByDefault))
	count, err := intstr.GetScaledValueFromIntOrPercent(&most, rolled, false)
	require.NoError(t, err)
	require.Positive(t, count, "REFIT_SCALE_SLOTS is of %d machines", rolled)
	return most, count
}

// TestARolloutCostsTheAPIServerAFewWritesAMachine rolls a large fleet of instant hosts on a
// real API server: first one at a time, then many at a time. REFIT_SCALE_MACHINES is how many
// there are, REFIT_SCALE_SLOTS how many go at once, REFIT_SCALE_FOR how long all of it may take,
// and REFIT_SCALE_PROFILE a file for a profile of the coordinator's CPU.
func TestARolloutCostsTheAPIServerAFewWritesAMachine(t *testing.T) {
	w := newFleetWorld(t, apiserver.WithAudit(coordinatorWrites))
	size := fleetSize(t)
	others := size / untouchedPart
	rolled := size - others
	most, places := atOnce(t, rolled)
	oneAtATime := min(mostOneAtATime, rolled/10)
	w.fill(rolled, others)
	w.play()
	w.start()
	begun := time.Now()
	w.await("machines are taken on", size, func() int { return w.upToDate("workers") + w.upToDate("others") })
	takenOn, cpuTakenOn := time.Since(begun), w.cpu()
	w.quiet()
	idle := w.memory("VmRSS")
	objects, roundTrip := w.objectsMiB(), w.roundTrip()

	// One at a time: what a decision takes when nothing else goes on.
	from, cpuBefore := time.Now(), w.cpu()
	w.budget("workers", intstr.FromInt32(1), newK8s)
	w.await("machines go one at a time", oneAtATime, w.seen.releases)
	_, single, singleAll := w.seen.latencies(1, oneAtATime, 1)

	// A coordinator that ends, and the next one.
	cpuFirst := w.cpu() - cpuBefore
	peak := w.memory("VmHWM")
	require.NoError(t, w.coordinator.Process.Signal(syscall.SIGTERM))
	_, _ = w.coordinator.Process.Wait()
	known := w.seen.reservations()
	restarted := time.Now()
	w.start()
	w.await("the next coordinator decides", known+1, w.seen.reservations)
	startUp := time.Since(restarted)

	// Many at a time: what it costs.
	widened, cpuWide, doneBefore, usedBefore := time.Now(), w.cpu(), w.upToDate("workers"), w.usage()
	w.budget("workers", most, newK8s)
	profile := w.profile(t)
	w.await("machines go many at a time", rolled, func() int { return w.upToDate("workers") })
	took, cpu, used, busy := time.Since(widened), cpuFirst+w.cpu(), w.usage().since(usedBefore), load()
	profile()
	w.quiet()
	peak = max(peak, w.memory("VmHWM"))
	wideCPU := w.cpu() - cpuWide

	writes := audit.Read(t, w.server.AuditLog()).By(coordinatorUser).Between(from, time.Now())
	perMachine := tallyWrites(writes)
	_, wide, wideAll := w.seen.latencies(len(w.seen.reserved)/2, len(w.seen.reserved), places)

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%d machines, %d of them rolled; at most %d at once, %d seen at once; load average %s\n", size, rolled, places, w.seen.most, busy)
	row := func(what, value, against string) { fmt.Fprintf(out, "%s\t%s\t%s\n", what, value, against) }
	row("memory at rest", fmt.Sprintf("%.0f MiB", idle), fmt.Sprintf("%.1f times the %.0f MiB of JSON of its Machines and Nodes", idle/objects, objects))
	row("memory at most", fmt.Sprintf("%.0f MiB", peak), fmt.Sprintf("%.1f times", peak/objects))
	row("taking the fleet on", takenOn.Round(time.Second).String(), fmt.Sprintf("%.1f ms of CPU a machine", milliseconds(cpuTakenOn)/float64(size)))
	row("start to first place given", startUp.Round(10*time.Millisecond).String(), fmt.Sprintf("%.0f writes of one status", milliseconds(startUp)/milliseconds(roundTrip)))
	row("rollout, CPU a machine", fmt.Sprintf("%.1f ms", milliseconds(cpu)/float64(rolled)), fmt.Sprintf("%.1f ms many at a time", milliseconds(wideCPU)/float64(rolled-doneBefore)))
	each := func(d time.Duration) string {
		return fmt.Sprintf("%.1f ms", milliseconds(d)/float64(rolled-doneBefore))
	}
	row("many at a time, CPU a machine", "coordinator "+each(used.coordinator), fmt.Sprintf("API server %s, etcd %s, the played hosts %s", each(used.apiserver), each(used.etcd), each(used.hosts)))
	row("rollout, many at a time", took.Round(time.Second).String(), fmt.Sprintf("%.1f machines/s; one status write takes %.1f ms", float64(rolled-doneBefore)/took.Seconds(), milliseconds(roundTrip)))
	latency := func(what string, l []time.Duration) {
		p50, p99 := percentile(l, 50), percentile(l, 99)
		row(what, fmt.Sprintf("p50 %s, p99 %s", p50.Round(time.Millisecond), p99.Round(time.Millisecond)),
			fmt.Sprintf("%.0f and %.0f status writes, %d measured", milliseconds(p50)/milliseconds(roundTrip), milliseconds(p99)/milliseconds(roundTrip), len(l)))
	}
	latency("place free to next grant, one at a time", single)
	latency("host's report to next grant, one at a time", singleAll)
	latency("place free to next grant, many at a time", wide)
	latency("host's report to next grant, many at a time", wideAll)
	total := 0
	for _, kind := range slices.SortedFunc(maps.Keys(perMachine), func(a, b string) int { return cmp.Compare(perMachine[b], perMachine[a]) }) {
		row("writes: "+kind, fmt.Sprintf("%.2f a machine", float64(perMachine[kind])/float64(rolled)), strconv.Itoa(perMachine[kind]))
		total += perMachine[kind]
	}
	row("writes, all kinds", fmt.Sprintf("%.2f a machine", float64(total)/float64(rolled)), fmt.Sprintf("at most %d", mostWrites))
	touched := writtenOf(writes, "other-")
	row("machines outside of it that were written", strconv.Itoa(len(touched)), fmt.Sprintf("of %d", others))
	require.NoError(t, out.Flush())

	assert.LessOrEqual(t, w.seen.most, places)
	assert.LessOrEqual(t, float64(total)/float64(rolled), float64(mostWrites))
	assert.Empty(t, touched)
	assert.LessOrEqual(t, perMachine["patch machines"], rolled, "each gets its template once")
	for _, h := range w.hosts {
		if runs := h.RanUnder(); strings.HasPrefix(h.Name, "worker-") {
			require.Len(t, runs, 1, "%s is worked on once", h.Name)
		}
	}
}

func percentile(l []time.Duration, p int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// fill makes the fleet: a control plane that is at the new version, workers, and others.
func (w *fleetWorld) fill(rolled, others int) {
	w.t.Helper()
	cp := fakehost.New(fleetNamespace, "cp1", newK8s, w.agents)
	cp.APIServer = newK8s
	w.hosts["cp1"] = cp
	var names []string
	for i := range rolled {
		names = append(names, fmt.Sprintf("worker-%04d", i))
	}
	for i := range others {
		names = append(names, fmt.Sprintf("other-%04d", i))
	}
	for _, name := range names {
		w.hosts[name] = fakehost.New(fleetNamespace, name, oldK8s, w.agents)
	}
	require.NoError(w.t, w.add(w.t.Context(), cp, "control-plane", nil, v1alpha1.RoleControlPlane))
	together(w.t, len(names), func(ctx context.Context, i int) error {
		pool, zone := "workers", fmt.Sprintf("zone-%d", i%3)
		if strings.HasPrefix(names[i], "other-") {
			pool = "others"
		}
		return w.add(ctx, w.hosts[names[i]], pool, map[string]string{corev1.LabelTopologyZone: zone}, v1alpha1.RoleWorker)
	})
	w.pool("workers", kubeletAt(oldK8s))
	w.pool("others", kubeletAt(oldK8s))
}

func (w *fleetWorld) budget(pool string, most intstr.IntOrString, version string) {
	w.t.Helper()
	w.pool(pool, func(d *v1alpha1.MachineDeployment) {
		kubeletAt(version)(d)
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: &most, MaxInFlight: &most}}
	})
}

// quiet waits until the coordinator has nothing to do.
func (w *fleetWorld) quiet() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		before := w.cpu()
		time.Sleep(2 * time.Second)
		return w.cpu()-before < 100*time.Millisecond
	}, 5*time.Minute, 10*time.Millisecond, "the coordinator comes to rest")
}

// objectsMiB is the size of the Machines and Nodes as the API server sends them.
func (w *fleetWorld) objectsMiB() float64 {
	w.t.Helper()
	total := 0
	for _, list := range []client.ObjectList{&v1alpha1.MachineList{}, &corev1.NodeList{}} {
		require.NoError(w.t, w.admin.List(w.t.Context(), list))
		text, err := json.Marshal(list)
		require.NoError(w.t, err)
		total += len(text)
	}
	return float64(total) / (1 << 20)
}

// roundTrip is how long the API server takes for one write of a Machine's status: the middle of many.
func (w *fleetWorld) roundTrip() time.Duration {
	w.t.Helper()
	var all []time.Duration
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: "cp1"}}
	for i := range 200 {
		patch := fmt.Sprintf(`{"status":{"observedEpoch":%d}}`, i%2)
		start := time.Now()
		require.NoError(w.t, w.admin.Status().Patch(w.t.Context(), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
		all = append(all, time.Since(start))
	}
	return percentile(all, 50)
}

// tallyWrites counts what was written, by kind. The lease of the leader goes by time and not by machine.
func tallyWrites(log audit.Log) map[string]int {
	out := map[string]int{}
	for _, e := range log {
		if e.ObjectRef.Resource == "leases" {
			continue
		}
		kind := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			kind += "/" + e.ObjectRef.Subresource
		}
		if !e.Succeeded() {
			kind += " (refused)"
		}
		out[kind]++
	}
	return out
}

// writtenOf are the objects with that prefix that were written.
func writtenOf(log audit.Log, prefix string) []string {
	seen := map[string]bool{}
	for _, e := range log {
		if strings.HasPrefix(e.ObjectRef.Name, prefix) {
			seen[e.ObjectRef.Resource+"/"+e.ObjectRef.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
