package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-dev/refit/api/v1alpha1"
	clidrain "github.com/refit-dev/refit/cli/drain"
	"github.com/refit-dev/refit/cli/forecast"
	"github.com/refit-dev/refit/pkg/usage"
)

// kubelet ends the pods that are being deleted.
func (d *desk) kubelet() {
	for d.Context().Err() == nil {
		pods, err := d.kube.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{})
		for i := 0; err == nil && i < len(pods.Items); i++ {
			if p := &pods.Items[i]; p.DeletionTimestamp != nil {
				_ = d.kube.CoreV1().Pods("default").Delete(d.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.UID}})
			}
		}
		time.Sleep(interval)
	}
}

// closedBudget needs the one pod of the app.
func (d *desk) closedBudget(app string) {
	d.Helper()
	one := intstr.FromInt(1)
	_, err := d.kube.PolicyV1().PodDisruptionBudgets("default").Create(d.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}, metav1.CreateOptions{})
	require.NoError(d, err)
	require.Eventually(d, func() bool {
		b, err := d.kube.PolicyV1().PodDisruptionBudgets("default").Get(d.Context(), app, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == 1
	}, patience, interval)
}

func (d *desk) schedulable(node string) bool {
	d.Helper()
	n, err := d.kube.CoreV1().Nodes().Get(d.Context(), node, metav1.GetOptions{})
	require.NoError(d, err)
	return !n.Spec.Unschedulable
}

func (d *desk) hasPod(name string) bool {
	_, err := d.kube.CoreV1().Pods("default").Get(d.Context(), name, metav1.GetOptions{})
	return err == nil
}

func TestADrainByHandNeedsNoRefitAndGivesBackWhatItCannotDrain(t *testing.T) {
	d := newDesk(t, "disruption-controller")
	go d.kubelet()
	for _, name := range []string{"w1", "w2", "w3"} {
		d.node(name, "")
	}
	d.workload("web", "w1", false)
	d.workload("db", "w2", false)
	d.workload("cache", "w2", false)
	d.closedBudget("db")

	t.Run("a dry run changes nothing", func(t *testing.T) {
		assert.Contains(t, d.ok("drain", "w1", "--dry-run"), "w1    1     1       0     0      -")
		_, errs, code := d.refit("drain", "w1", "w2", "--dry-run=server")
		assert.Equal(t, usage.ExitRefused, code)
		assert.Contains(t, errs, "node/w1 pod default/web evicted (server dry run)")
		assert.Contains(t, errs, "node/w2 pod default/cache evicted (server dry run)")
		assert.Contains(t, errs, "1 of 2 nodes would not be drained: w2 (EvictionBlocked)")
		assert.True(t, d.schedulable("w1") && d.schedulable("w2") && d.hasPod("web") && d.hasPod("cache"))
	})
	t.Run("drained", func(t *testing.T) {
		out := d.ok("drain", "w1", "--ignore-daemonsets")
		assert.Regexp(t, `node/w1 drained in \ds: 1 pod evicted; it stays cordoned until kubectl uncordon w1`, out)
		assert.NotContains(t, out, "\x1b")
		assert.False(t, d.schedulable("w1") || d.hasPod("web"))
	})
	t.Run("blocked", func(t *testing.T) {
		out, errs, code := d.refit("drain", "w2", "--timeout", "2s", "-o", "json")
		assert.Equal(t, usage.ExitRefused, code)
		assert.Contains(t, errs, "not every node was drained: node w2: EvictionBlocked")
		assert.Contains(t, errs, "warning: node w2: no other node takes its pods now (NoCapacity)")
		var kinds []string
		for line := range strings.Lines(out) {
			var l clidrain.Line
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			kinds = append(kinds, l.Kind)
			if l.Kind == "NotDrained" {
				require.Len(t, l.Pods, 1)
				assert.Equal(t, []string{"db"}, l.Pods[0].Budgets)
			}
		}
		assert.Equal(t, "Cordoned", kinds[0])
		assert.Subset(t, kinds, []string{"Blocked", "Evicted", "Gone"})
		assert.Equal(t, []string{"NotDrained", "GivenBack"}, kinds[len(kinds)-2:])
		assert.True(t, d.schedulable("w2") && d.hasPod("db"))
	})
	t.Run("interrupted", func(t *testing.T) { d.interrupted("w2") })
	t.Run("policies and selectors", func(t *testing.T) {
		d.workload("debug", "w3", true)
		assert.Contains(t, d.refused(usage.ExitRefused, "drain", "w3"), "UnmanagedPods")
		assert.True(t, d.schedulable("w3") && d.hasPod("debug"))
		d.ok("drain", "w3", "--pod-selector", "app!=debug")
		assert.True(t, d.hasPod("debug"))
		d.ok("drain", "w3", "--force")
		assert.False(t, d.hasPod("debug"))
	})
}

// interrupted is Ctrl-C to the real program while a budget holds a pod.
func (d *desk) interrupted(node string) {
	d.Helper()
	stop := os.Interrupt
	if signal.Ignored(stop) { // as a background job of a shell has it, and hands it down
		stop = syscall.SIGTERM
	}
	self, err := os.Executable()
	require.NoError(d, err)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(d.Context(), self, "--kubeconfig", d.kubeconfig, "--cache-dir", d.TempDir(), "drain", node)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout = &untilSeen{out: &out, text: "blocked since", then: func() { _ = cmd.Process.Signal(stop) }}
	cmd.Stderr = &errs
	var exit *exec.ExitError
	require.ErrorAs(d, cmd.Run(), &exit)
	assert.Equal(d, usage.ExitFault, exit.ExitCode())
	assert.Contains(d, errs.String(), "error: interrupted")
	assert.Contains(d, out.String(), "node/"+node+" uncordoned: it takes pods again")
	assert.True(d, d.schedulable(node))
}

// untilSeen only writes: io.Copy would go past Write if it could read, too.
type untilSeen struct {
	out  *bytes.Buffer
	text string
	then func()
}

func (u *untilSeen) Write(p []byte) (int, error) {
	n, err := u.out.Write(p)
	if strings.Contains(u.out.String(), u.text) {
		u.then()
	}
	return n, err
}

func TestANodeOfRefitsIsNotDrainedByHand(t *testing.T) {
	d := newDesk(t)
	go d.rollOut()
	go d.kubelet()
	d.node("w1", "")
	d.ok("install", "--coordinator-image", image)
	ledger := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "refit", Namespace: "refit"}, Spec: v1alpha1.LedgerSpec{Slots: []v1alpha1.Slot{{
		Machine: "w1", GrantID: "g1", Disruption: v1alpha1.DisruptionDrain, State: v1alpha1.SlotGranted, ReservedTime: metav1.Now(),
	}}}}
	require.NoError(t, d.client.Create(t.Context(), ledger))
	assert.Contains(t, d.refused(usage.ExitRefused, "drain", "w1"), "Machine refit/w1 is in an operation of Refit's (grant g1, Granted): wait until it has ended (kubectl refit status), or drain all the same with --force-ownership")
	assert.True(t, d.schedulable("w1"))
	ledger.Spec.Slots = nil
	require.NoError(t, d.client.Update(t.Context(), ledger))
	mark := `{"metadata":{"annotations":{"` + v1alpha1.AnnotationCordonedBy + `":"g0"}}}`
	_, err := d.kube.CoreV1().Nodes().Patch(t.Context(), "w1", types.MergePatchType, []byte(mark), metav1.PatchOptions{})
	require.NoError(t, err)
	assert.Contains(t, d.refused(usage.ExitRefused, "drain", "w1"), "node w1 is cordoned by Refit (grant g0)")
	d.ok("drain", "w1", "--force-ownership")
	assert.False(t, d.schedulable("w1"))
}

func TestADrainKnowsNodesWhosePodsNoneTakesOnceAllTargetsAreCordoned(t *testing.T) {
	node := func(name string, cordoned bool) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
	}
	for name, tc := range map[string]struct {
		others  bool // are cordoned
		targets int
		want    []string
	}{
		"another takes them":      {targets: 2},
		"all others are cordoned": {others: true, targets: 1, want: []string{"w1"}},
		"all are drained":         {targets: 3, want: []string{"w1", "w2", "w3"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &drainOptions{nodes: []corev1.Node{node("w1", false), node("w2", tc.others), node("w3", tc.others)}}
			var targets []forecast.Target
			for i := range o.nodes[:tc.targets] {
				targets = append(targets, forecast.Target{Node: &o.nodes[i]})
			}
			assert.Equal(t, tc.want, o.onlyNodes(targets))
			assert.False(t, o.nodes[0].Spec.Unschedulable, "what was read is left alone")
		})
	}
}

func TestMistakesWithDrainSayWhatToDo(t *testing.T) {
	d := &desk{T: t, kubeconfig: "/nonexistent/kubeconfig"}
	for name, tc := range map[string]struct {
		args    []string
		message string
	}{
		"past budgets":        {[]string{"drain", "w1", "--disable-eviction"}, "--disable-eviction is refused: it deletes pods past their budgets"},
		"a grace period":      {[]string{"drain", "w1", "--grace-period", "5"}, "--grace-period 5 is refused"},
		"DaemonSets too":      {[]string{"drain", "w1", "--ignore-daemonsets=false"}, "--ignore-daemonsets=false is refused"},
		"no node":             {[]string{"drain"}, "name the nodes to drain, or select them with -l, and not both"},
		"names and selector":  {[]string{"drain", "w1", "-l", "a=b"}, "and not both"},
		"an unreadable label": {[]string{"drain", "w1", "--pod-selector", "a==" + "="}, "reading --pod-selector"},
		"an unknown dry run":  {[]string{"drain", "w1", "--dry-run=maybe"}, `--dry-run "maybe" is not known`},
		"an unknown format":   {[]string{"drain", "w1", "-o", "yaml"}, `--output "yaml" is not known`},
		"a negative timeout":  {[]string{"drain", "w1", "--timeout=-1s"}, "are 0 or more"},
	} {
		t.Run(name, func(t *testing.T) { assert.Contains(t, d.refused(usage.ExitCode, tc.args...), tc.message) })
	}
}
