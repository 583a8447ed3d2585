package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// foreign is the worker that its operator has cordoned before the upgrade.
const foreign = "worker-3"

// TestAFleetIsUpgradedInPlace is the demo as an assertion, with an operator's
// cordon, a wrong wish, killed programs and a killed host in it. The subtests share
// one fleet and run in order.
func TestAFleetIsUpgradedInPlace(t *testing.T) {
	if os.Getenv("REFIT_FLEET") == "" {
		t.Skip("set REFIT_FLEET=1 (as root) to boot a real fleet: make test-fleet")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	s := &story{t: t, ctx: ctx}
	s.up()
	require.True(t, t.Run("adopted machines show what independent probes see", s.statusAgreesBefore))
	t.Run("the credential of a host reaches its own Machine only", s.credentialIsNarrow)
	t.Run("a version that no repository has ends as a condition before any cordon", s.badRequest)
	t.Run("the plan of an edit is the same from the cluster, from files and on the host", s.planIsShown)
	require.True(t, t.Run("one edit takes the fleet to the next minor and runtime major, whatever is killed", s.upgrade))
	t.Run("the plan that was shown before the edit is the one that was carried out", s.planIsCarriedOut)
	t.Run("status shows what independent probes see", s.statusAgreesAfter)
	t.Run("the application kept its budget and lost no pod without eviction", s.applicationKept)
	t.Run("the audit log shows no eviction past a budget and no deletion", s.drainsKeptTheRules)
	t.Run("nothing was rebooted", s.nothingRebooted)
	t.Run("the operator's cordon is still there and ours are gone", s.cordons)
	t.Run("each package was installed once", s.installedOnce)
	t.Run("nothing was downloaded inside a drained window", s.nothingDownloadedDrained)
	t.Run("every phase of every machine was timed", s.timed)
}

type story struct {
	t      *testing.T
	ctx    context.Context
	env    *Env
	before map[string]Seen

	shown   map[string]preview.MachinePlan // before the edit, by machine
	planned map[string]string              // hash of the plan under which a machine worked

	sampler *Sampler
	gone    *Deletions

	killedHost string
	windows    []window
}

// window is the time in which a machine was out of service.
type window struct {
	machine    string
	start, end time.Time
}

func (s *story) up() {
	f, err := testfleet.Up(s.ctx, Options("upgrade", 3, os.Stderr))
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.dump()
		}
		if os.Getenv("REFIT_KEEP_FLEET") == "" {
			require.NoError(s.t, f.Down(context.Background()))
		}
	})
	s.env, err = Open(f, os.Stderr)
	require.NoError(s.t, err)
	require.NoError(s.t, s.env.DeployApp(s.ctx, AppImage))
	require.NoError(s.t, s.env.Install(s.ctx))
	require.NoError(s.t, s.env.Adopt(s.ctx))
}

// dump writes what a person would look at first into a file, and names it.
func (s *story) dump() {
	if s.env == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	file, err := os.CreateTemp("", "refit-scenario-*.log")
	if err != nil {
		s.t.Logf("no record of the failure: %v", err)
		return
	}
	defer file.Close()
	for _, args := range [][]string{
		{"get", "machines,machinedeployments,ledgers", "-n", MachineNamespace, "-o", "yaml"},
		{"get", "nodes,pods", "-A", "-o", "wide"},
		{"get", "events", "-A"},
		{"logs", "-n", SystemNamespace, "-l", "app.kubernetes.io/name=refit-coordinator", "--tail=500", "--prefix"},
	} {
		out, err := s.env.Kubectl(ctx, args...)
		fmt.Fprintf(file, "\n$ kubectl %s\n%s%v\n", strings.Join(args, " "), out, err)
	}
	for _, h := range s.env.Fleet.Hosts() {
		out, err := h.Exec(ctx, nil, "journalctl", "--no-pager", "-n", "500", "-u", "refit-*")
		fmt.Fprintf(file, "\n== journal of %s\n%s%v\n", h.Name(), out, err)
	}
	s.t.Logf("objects, coordinator's log and the hosts' journals are in %s", file.Name())
}

func (s *story) statusAgreesBefore(t *testing.T) {
	s.before = s.look(t)
	for name, seen := range s.before {
		assert.Equal(t, From.Kubernetes, seen.Kubelet, name)
		assert.Equal(t, From.Containerd, seen.Runtime, name)
	}
}

func (s *story) statusAgreesAfter(t *testing.T) {
	for name, seen := range s.look(t) {
		assert.Equal(t, To.Kubernetes, seen.Kubelet, name)
		assert.Equal(t, To.Containerd, seen.Runtime, name)
		assert.Contains(t, seen.Packages["kubelet"], strings.TrimPrefix(To.Kubernetes, "v"), name)
		assert.Contains(t, seen.Packages["kubeadm"], strings.TrimPrefix(To.Kubernetes, "v"), name)
		assert.Contains(t, seen.Packages["containerd.io"], To.Containerd, name)
	}
}

// look probes every host and compares with its Machine's status.
func (s *story) look(t *testing.T) map[string]Seen {
	machines, err := s.env.Machines(s.ctx)
	require.NoError(t, err)
	require.Len(t, machines, len(s.env.Fleet.Hosts()))
	found := map[string]Seen{}
	for i := range machines {
		m := &machines[i]
		seen, err := s.env.Look(s.ctx, s.env.Fleet.Host(m.Name))
		require.NoError(t, err, m.Name)
		found[m.Name] = seen
		require.NotNil(t, m.Status.Versions, m.Name)
		assert.Equal(t, seen.Kubelet, m.Status.Versions.Kubelet, m.Name)
		assert.Equal(t, seen.Runtime, strings.TrimPrefix(m.Status.Versions.ContainerRuntime.Version, "v"), m.Name)
		assert.Equal(t, seen.BootID, m.Status.Host.BootID, m.Name)
		assert.Equal(t, seen.MachineID, m.Status.Host.MachineID, m.Name)
		if seen.APIServer == "" {
			assert.Nil(t, m.Status.Versions.ControlPlane, m.Name)
			continue
		}
		assert.Equal(t, seen.APIServer, m.Status.Versions.ControlPlane.APIServer, m.Name)
	}
	return found
}

func (s *story) badRequest(t *testing.T) {
	wrong := strings.TrimSuffix(From.Kubernetes, "3") + "99"
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: MachineNamespace, Name: "worker-1"}}
	patch := func(value string) {
		raw := `{"spec":{"versions":{"kubelet":` + value + `}}}`
		require.NoError(t, s.env.Client.Patch(s.ctx, m, client.RawPatch(types.MergePatchType, []byte(raw))))
	}
	patch(`"` + wrong + `"`)
	var stalled *metav1.Condition
	require.Eventually(t, func() bool {
		if s.env.Client.Get(s.ctx, client.ObjectKeyFromObject(m), m) != nil {
			return false
		}
		stalled = meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStalled)
		return stalled != nil && stalled.Status == metav1.ConditionTrue
	}, 2*time.Minute, time.Second, "the wrong wish was never reported")
	assert.Equal(t, "VersionNotFound", stalled.Reason)
	assert.Contains(t, stalled.Message, strings.TrimPrefix(wrong, "v"), "the message names what was asked for")
	assert.Nil(t, m.Status.Grant)
	nodes, err := s.env.Kube.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for i := range nodes.Items {
		assert.False(t, nodes.Items[i].Spec.Unschedulable, nodes.Items[i].Name)
		assert.NotContains(t, nodes.Items[i].Annotations, v1alpha1.AnnotationCordonedBy)
	}
	for name, seen := range s.look(t) {
		assert.Equal(t, s.before[name], seen, "the fleet is untouched")
	}
	patch("null") // gives the field back to its pool
	require.NoError(t, s.env.Follow(s.ctx, AllAt(From), func(Change) {}))
}

func (s *story) upgrade(t *testing.T) {
	s.cordonForeign(t)
	s.allowTwoWorkersDown(t)
	s.sampler = s.env.StartSampler(s.ctx)
	var err error
	s.gone, err = s.env.StartDeletions(s.ctx, AppNamespace)
	require.NoError(t, err)
	require.NoError(t, s.env.Edit(s.ctx, To))
	k := &killer{story: s, t: t}
	begin := time.Now()
	s.planned = map[string]string{}
	err = s.env.Follow(s.ctx, AllAt(To), func(c Change) {
		if st := c.Machine.Status; st.Phase == v1alpha1.PhaseApplying && st.Plan != nil {
			s.planned[c.Machine.Name] = st.Plan.Hash
		}
		s.env.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), c.Machine.Name, Line(&c.Machine))
		k.saw(&c.Machine)
	})
	k.wg.Wait()
	require.NoError(t, err)
	assert.Equal(t, []string{"agent", "coordinator", "host"}, k.killed(), "everything that was to be killed was killed")
}

func (s *story) cordonForeign(t *testing.T) {
	raw := []byte(`{"spec":{"unschedulable":true}}`)
	_, err := s.env.Kube.CoreV1().Nodes().Patch(s.ctx, foreign, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "operator"})
	require.NoError(t, err)
}

// allowTwoWorkersDown: the operator's cordoned machine counts as unavailable, so that one more may go.
// Working on cordoned machines must be asked for.
func (s *story) allowTwoWorkersDown(t *testing.T) {
	p := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: MachineNamespace, Name: "workers"}}
	raw := []byte(`{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":2,"cordonedMachines":"Include"}}}}`)
	require.NoError(t, s.env.Client.Patch(s.ctx, p, client.RawPatch(types.MergePatchType, raw)))
}

// killer ends programs and a host at the moments that hurt most.
type killer struct {
	*story
	t    *testing.T
	wg   sync.WaitGroup
	mu   sync.Mutex
	dead map[string]string // what was killed → on which machine
}

func (k *killer) killed() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, what := range []string{"agent", "coordinator", "host"} {
		if k.dead[what] != "" {
			out = append(out, what)
		}
	}
	return out
}

func (k *killer) saw(m *v1alpha1.Machine) {
	h := k.env.Fleet.Host(m.Name)
	if h == nil || h.ControlPlane() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead == nil {
		k.dead = map[string]string{}
	}
	op := m.Status.LastOperation
	working := op != nil && op.State == v1alpha1.OperationProcessing && m.Status.Phase == v1alpha1.PhaseApplying
	switch {
	case working && k.dead["agent"] == "":
		k.dead["agent"] = m.Name
		k.killAgent(h)
	case m.Status.Phase == v1alpha1.PhaseDraining && k.dead["coordinator"] == "":
		k.dead["coordinator"] = m.Name
		k.killCoordinators()
	case working && k.dead["host"] == "" && k.dead["agent"] != m.Name:
		k.dead["host"], k.killedHost = m.Name, m.Name
		k.killHost(h, op.ID)
	}
}

// killAgent kills the agent in whichever form it runs.
func (k *killer) killAgent(h *testfleet.Host) {
	if !AsDaemonSet() {
		k.killUnit(h, "refit-agent.service")
		return
	}
	_, err := h.Exec(k.ctx, nil, "pkill", "-KILL", "-f", "^/refit-agent run --daemonset")
	assert.NoError(k.t, err)
	k.env.Say("          >>> SIGKILL of the agent's pod on %s", h.Name())
}

func (k *killer) killUnit(h *testfleet.Host, unit string) {
	_, err := h.Exec(k.ctx, nil, "systemctl", "kill", "--signal=SIGKILL", unit)
	assert.NoError(k.t, err)
	k.env.Say("          >>> SIGKILL of %s on %s", unit, h.Name())
}

// killCoordinators kills the coordinator's processes wherever they run.
func (k *killer) killCoordinators() {
	pods, err := k.env.Kube.CoreV1().Pods(SystemNamespace).List(k.ctx, metav1.ListOptions{})
	if !assert.NoError(k.t, err) {
		return
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		h := k.env.Fleet.Host(p.Spec.NodeName)
		if h == nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		if _, err := h.Exec(k.ctx, nil, "pkill", "-KILL", "-f", "^/refit-coordinator"); err == nil {
			k.env.Say("          >>> SIGKILL of the coordinator on %s", h.Name())
		}
	}
}

// killHost cuts the power in the middle of a package transaction, as the host's own disk shows it.
func (k *killer) killHost(h *testfleet.Host, operation string) {
	journal := filepath.Join(h.RootDir(), "var/lib/refit/journal", operation+".json")
	k.wg.Go(func() {
		step := ""
		for deadline := time.Now().Add(time.Minute); step != "InstallPackages" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			step = begun(journal)
		}
		assert.Equal(k.t, "InstallPackages", step, "the host is killed while it installs packages")
		time.Sleep(400 * time.Millisecond) // dpkg is at work
		assert.NoError(k.t, h.Kill())
		k.env.Say("          >>> host %s is dead, in the middle of step %s", h.Name(), begun(journal))
		time.Sleep(5 * time.Second)
		assert.NoError(k.t, h.Start(k.ctx))
		k.env.Say("          >>> host %s has power again", h.Name())
	})
}

// begun is the step that a journal says is under way.
func begun(journal string) string {
	raw, err := os.ReadFile(journal)
	if err != nil {
		return ""
	}
	var j struct {
		Record struct {
			Steps []struct{ Kind, State string }
		}
	}
	if json.Unmarshal(raw, &j) != nil {
		return ""
	}
	for _, s := range j.Record.Steps {
		if s.State == "Begun" {
			return s.Kind
		}
	}
	return ""
}

func (s *story) applicationKept(t *testing.T) {
	samples := s.sampler.Stop()
	low := Lowest(samples)
	require.Greater(t, len(samples), 500)
	assert.GreaterOrEqual(t, low.Ready, AppMinAvailable, "at %s", low.Time)
	gone := s.gone.Stop()
	assert.NotEmpty(t, gone, "pods were moved")
	for _, g := range gone {
		assert.True(t, g.Evicted, "%s on %s went away without eviction", g.Name, g.Node)
	}
	s.env.Say("application: %d samples, lowest %d of %d ready, %d evictions", len(samples), low.Ready, AppReplicas, len(gone))
}

// drainsKeptTheRules judges the coordinator by what the API server has written down, and then
// the judge itself: without the API server's own writes of the budgets each eviction is a fault.
func (s *story) drainsKeptTheRules(t *testing.T) {
	log, err := s.env.Fleet.AuditLog()
	require.NoError(t, err)
	rules := audit.Rules{Drainers: []string{"system:serviceaccount:" + SystemNamespace + ":refit-coordinator"}}
	v := log.Judge(rules)
	assert.Empty(t, v.Violations)
	assert.Zero(t, v.Deleted)
	require.Positive(t, v.Charged, "pods of the application's budget were evicted")
	assert.Len(t, log.Uncharged().Judge(rules).Violations, v.Charged)
	s.env.Say("audit log: %d evictions accepted, %d of them out of a budget, %d refused", v.Evictions, v.Charged, v.Refused)
}

func (s *story) nothingRebooted(t *testing.T) {
	for name, seen := range s.look(t) {
		if name == s.killedHost {
			assert.NotEqual(t, s.before[name].BootID, seen.BootID, "the killed host has booted again")
			continue
		}
		assert.Equal(t, s.before[name].BootID, seen.BootID, name)
	}
}

func (s *story) cordons(t *testing.T) {
	nodes, err := s.env.Kube.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for i := range nodes.Items {
		n := &nodes.Items[i]
		assert.Equal(t, n.Name == foreign, n.Spec.Unschedulable, n.Name)
		assert.NotContains(t, n.Annotations, v1alpha1.AnnotationCordonedBy, n.Name)
	}
}

func (s *story) installedOnce(t *testing.T) {
	for _, h := range s.env.Fleet.Hosts() {
		log, err := h.Exec(s.ctx, nil, "cat", "/var/log/dpkg.log")
		require.NoError(t, err)
		for pkg, version := range map[string]string{"kubelet": strings.TrimPrefix(To.Kubernetes, "v"), "kubeadm": strings.TrimPrefix(To.Kubernetes, "v"), "containerd.io": To.Containerd} {
			n := upgrades(string(log), pkg, version)
			if h.Name() == s.killedHost {
				assert.GreaterOrEqual(t, n, 1, "%s on %s", pkg, h.Name())
				continue
			}
			assert.Equal(t, 1, n, "%s on %s", pkg, h.Name())
		}
		holds, err := h.Exec(s.ctx, nil, "apt-mark", "showhold")
		require.NoError(t, err)
		for _, pkg := range []string{"kubelet", "kubeadm", "kubectl"} {
			assert.Contains(t, string(holds), pkg, "the hold on %s is back on %s", pkg, h.Name())
		}
	}
}

// upgrades counts the transactions of dpkg.log that brought a package to a version.
func upgrades(log, pkg, version string) int {
	n := 0
	for line := range strings.Lines(log) {
		f := strings.Fields(line)
		if len(f) >= 6 && f[2] == "upgrade" && strings.HasPrefix(f[3], pkg+":") && strings.HasPrefix(f[5], version) {
			n++
		}
	}
	return n
}

func (s *story) nothingDownloadedDrained(t *testing.T) {
	requests, err := s.env.Fleet.Downloads()
	require.NoError(t, err)
	debs := 0
	for _, r := range requests {
		if !strings.HasSuffix(r.Path, ".deb") {
			continue
		}
		debs++
		for _, w := range s.drained(t) {
			inside := r.Host == w.machine && r.Time.After(w.start) && r.Time.Before(w.end)
			assert.False(t, inside, "%s fetched %s at %s, drained from %s to %s", r.Host, r.Path, r.Time, w.start, w.end)
		}
	}
	assert.Positive(t, debs, "the mirror saw the downloads of staging")
}

// drained are the windows from the end of the drain to the release of the slot, from the machines' histories.
func (s *story) drained(t *testing.T) []window {
	if s.windows != nil {
		return s.windows
	}
	machines, err := s.env.Machines(s.ctx)
	require.NoError(t, err)
	for i := range machines {
		for _, h := range machines[i].Status.History {
			start := h.StartTime.Time
			for _, p := range h.Phases {
				if p.Name == "Wait" || p.Name == "Drain" {
					start = start.Add(p.Duration.Duration)
				}
			}
			s.windows = append(s.windows, window{machine: machines[i].Name, start: start, end: h.EndTime.Time})
		}
	}
	require.Len(t, s.windows, len(machines), "every machine was upgraded in one window")
	return s.windows
}

func (s *story) timed(t *testing.T) {
	machines, err := s.env.Machines(s.ctx)
	require.NoError(t, err)
	PrintTimings(os.Stderr, machines)
	for i := range machines {
		require.NotEmpty(t, machines[i].Status.History, machines[i].Name)
		for _, name := range []string{"Wait", "Drain", "Apply", "Restart", "Ready"} {
			assert.NotEqual(t, "-", duration(machines[i].Status.History[0].Phases, name), "%s of %s", name, machines[i].Name)
		}
	}
}
