package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// why is what kubectl refit why says.
func (w *world) why(machine string) verbs.Explanation {
	w.t.Helper()
	out, _ := w.refitOK("why", machine, "-o", "json")
	var e verbs.Explanation
	require.NoError(w.t, json.Unmarshal([]byte(out), &e))
	return e
}

// types types a command that why has shown into a shell whose kubectl has the plugin. An editor changes nothing.
func (w *world) types(command string) {
	w.t.Helper()
	dir := w.t.TempDir()
	require.NoError(w.t, os.Symlink(server.Kubectl(w.t), filepath.Join(dir, "kubectl")))
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+filepath.Dir(cli)+":"+os.Getenv("PATH"), "KUBECONFIG="+w.kubeconfig, "KUBE_EDITOR=true", "HOME="+dir)
	out, _ := cmd.CombinedOutput()
	assert.Contains(w.t, []int{0, usage.ExitRefused}, cmd.ProcessState.ExitCode(), "%s: it was understood, and a forecast may be a refusal\n%s", command, out)
}

// holds has the hosts of these machines accept nothing, so that the others go first.
func (w *world) holds(names ...string) {
	for _, name := range names {
		w.hosts[name].set(func(h *host) { h.Hold = true })
	}
}

// worksOn has a machine be at work until the test ends, and no other machine begin before it.
func (w *world) worksOn(name string) {
	w.t.Helper()
	never := make(chan struct{})
	w.hosts[name].set(func(h *host) { h.Working = never })
	w.until(name+" works", func() bool { s := w.slot(name); return s != nil && s.State == v1alpha1.SlotAccepted })
}

func (w *world) budget(name string, most int32) {
	w.t.Helper()
	b := &v1alpha1.MachineDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.MaxUnavailable = ptr(intstr.FromInt32(most))
	require.NoError(w.t, w.admin.Create(context.Background(), b))
}

// guarded is a pod that runs, with a budget that lets nobody go now, and might later.
func (w *world) guarded(name, node string) {
	w.t.Helper()
	w.pod(name, node, true)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	require.NoError(w.t, w.admin.Patch(context.Background(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"`+name+`"}}}`))))
	running := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	require.NoError(w.t, w.admin.Status().Patch(context.Background(), p, client.RawPatch(types.MergePatchType, []byte(running))))
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}
	require.NoError(w.t, w.admin.Create(context.Background(), b))
	w.t.Cleanup(func() { _ = w.admin.Delete(context.Background(), b) })
	w.seen(b, policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 2})
}

// waiting is one situation in which somebody asks why, and the answer.
type waiting struct {
	// arrange makes the situation, with the coordinator that w.start starts.
	arrange func(*testing.T, *world)
	machine string // who is asked about; w2 where it is empty

	standing verbs.Standing // Waiting where it is empty
	reason   string
	says     string
	heldBy   []string
	until    func(*world) time.Time // nil: nobody knows
	types    []string
	goesOn   bool // typing it ends this waiting
}

func TestWhyIsRightOfARealCoordinatorsMachines(t *testing.T) {
	pool := func(w *world, edits ...func(*v1alpha1.MachineDeployment)) {
		w.pool("workers", workerAt(newK8s), edits...)
	}
	for name, tc := range situations(pool) {
		t.Run(name, func(t *testing.T) {
			w := fleetOfThree(t)
			tc.arrange(t, w)
			tc.asked(t, w)
		})
	}
}

func (tc waiting) asked(t *testing.T, w *world) {
	if tc.machine == "" {
		tc.machine = "w2"
	}
	if tc.standing == "" {
		tc.standing = verbs.StandingWaiting
	}
	var e verbs.Explanation
	is := func() bool {
		e = w.why(tc.machine)
		return e.Standing == tc.standing && e.Reason == tc.reason && strings.Contains(e.Message, tc.says) && e.Since != nil &&
			slices.Equal(tc.heldBy, e.HeldBy) // the one who holds it may still have to hear that it is wanted elsewhere
	}
	if !assert.Eventually(t, is, patience, 100*time.Millisecond) {
		t.Fatalf("why says %+v", e)
	}
	if tc.until == nil {
		assert.Nil(t, e.Until)
	} else if assert.NotNil(t, e.Until) {
		assert.WithinDuration(t, tc.until(w), e.Until.Time, time.Second)
	}
	assert.Equal(t, tc.types, e.Type)
	text, _ := w.refitOK("why", tc.machine)
	for _, command := range e.Type {
		assert.Contains(t, text, "\n  "+command+"\n")
		w.types(command)
	}
	if tc.goesOn {
		w.until(tc.machine+" does not wait for that any more", func() bool { return w.why(tc.machine).Reason != tc.reason })
	}
}

func situations(pool func(*world, ...func(*v1alpha1.MachineDeployment))) map[string]waiting {
	failure := func(w *world) {
		w.hosts["w1"].set(func(h *host) { h.Fail = true })
		w.holds("w2", "w3")
		pool(w)
		w.start()
		w.until("w1 has failed", func() bool { return w.machine("w1").Status.RolloutFailure != nil && w.slot("w1") == nil })
		for _, other := range []string{"w2", "w3"} {
			w.hosts[other].set(func(h *host) { h.Hold = false })
		}
	}
	opens := time.Now().AddDate(0, 6, 0)
	return map[string]waiting{
		"the budget of the pool": {
			arrange: func(_ *testing.T, w *world) { pool(w); w.start(); w.worksOn("w1") },
			reason:  "BudgetExhausted", says: "1 of 3 machines may be unavailable in MachineDeployment workers, and none is left: w1 being upgraded",
			heldBy: []string{"machinedeployment/workers", "machine/w1"}, types: []string{"kubectl refit why w1 -n refit"},
		},
		"a budget over all pools": {
			arrange: func(_ *testing.T, w *world) { w.budget("all", 1); pool(w, allowTwo); w.start(); w.worksOn("w1") },
			reason:  "BudgetExhausted", says: "MachineDisruptionBudget all: 1 of 4 machines may be unavailable, and none is left: w1 being upgraded",
			heldBy: []string{"machinedisruptionbudget/all", "machine/w1"}, types: []string{"kubectl refit why w1 -n refit"},
		},
		"the control plane, which is at work": {
			arrange: func(_ *testing.T, w *world) {
				w.hosts["cp1"].set(func(h *host) { h.Runtime, h.Hold = "1.7.27", false })
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pool":"plane"}}}`))
				require.NoError(w.t, w.admin.Patch(context.Background(), w.machine("cp1"), patch))
				w.holds("w1", "w2", "w3")
				versions := planeAt(newK8s)
				versions.ContainerRuntime = &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "1.7.28"}
				w.pool("plane", versions)
				pool(w)
				w.start()
				w.worksOn("cp1")
				w.hosts["w2"].set(func(h *host) { h.Hold = false })
			},
			reason: "ControlPlaneBusy", says: "control-plane machine cp1 is being worked on",
			heldBy: []string{"machine/cp1"}, types: []string{"kubectl refit why cp1 -n refit"},
		},
		"the control plane, which is older": {
			arrange: func(_ *testing.T, w *world) {
				w.hosts["cp1"].set(func(h *host) { h.Kubelet, h.APIServer, h.Hold = oldK8s, oldK8s, true })
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pool":"plane"}}}`))
				require.NoError(w.t, w.admin.Patch(context.Background(), w.machine("cp1"), patch))
				w.pool("plane", planeAt(newK8s))
				pool(w)
				w.start()
			},
			standing: verbs.StandingPreparing, reason: "WaitingForControlPlane", says: "whose oldest API server runs " + oldK8s,
			heldBy: []string{"machine/cp1"}, types: []string{"kubectl refit why cp1 -n refit"},
		},
		"a member of etcd that is not well": {
			arrange: func(_ *testing.T, w *world) {
				w.hosts["cp1"].set(func(h *host) {
					h.Runtime, h.Etcd = "1.7.27", &v1alpha1.ObservedEtcd{Member: "cp1", Leader: true, Members: 3, Healthy: 2, Quorum: true, Unwell: []string{"cp2"}}
				})
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pool":"plane"}}}`))
				require.NoError(w.t, w.admin.Patch(context.Background(), w.machine("cp1"), patch))
				versions := planeAt(newK8s)
				versions.ContainerRuntime = &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "1.7.28"}
				w.pool("plane", versions)
				w.start()
			},
			machine: "cp1", reason: "EtcdNotWell", says: "2 of 3 members are well, not cp2",
			heldBy: []string{"machine/cp1"}, types: []string{"kubectl get machine cp1 -n refit -o jsonpath={.status.etcd}"},
		},
		"a window that is closed": {
			arrange: func(_ *testing.T, w *world) {
				closed := v1alpha1.Window{Schedule: fmt.Sprintf("0 3 1 %d *", opens.Month()), Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}
				pool(w, rolling(func(r *v1alpha1.RollingUpdate) { r.Windows = []v1alpha1.Window{closed} }))
				w.start()
			},
			reason: "OutsideWindow", says: "outside of the windows of MachineDeployment workers: the next opens at", heldBy: []string{"machinedeployment/workers"},
			until: func(*world) time.Time { return time.Date(opens.Year(), opens.Month(), 1, 3, 0, 0, 0, time.UTC) },
		},
		"a person's pause": {
			arrange: func(_ *testing.T, w *world) {
				pool(w, func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true })
				w.start()
			},
			reason: "Paused", says: "MachineDeployment workers is paused", heldBy: []string{"machinedeployment/workers"},
			types: []string{"kubectl refit resume workers -n refit"}, goesOn: true,
		},
		"its own pause": {
			arrange: func(_ *testing.T, w *world) {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))
				require.NoError(w.t, w.admin.Patch(context.Background(), w.machine("w2"), patch))
				pool(w)
				w.start()
			},
			reason: "Paused", says: "the machine is paused", heldBy: []string{"machine/w2"},
			types: []string{"kubectl refit resume machine/w2 -n refit"}, goesOn: true,
		},
		"a rollout that paused itself": {
			arrange: func(_ *testing.T, w *world) { failure(w); w.hosts["w1"].set(func(h *host) { h.Fail = false }) },
			reason:  "FailureThresholdReached", says: "w1 (VerifyFailed)", heldBy: []string{"machine/w1"},
			types: []string{"kubectl refit retry machinedeployment/workers -n refit"}, goesOn: true,
		},
		"the stop switch": {
			arrange: func(_ *testing.T, w *world) { w.refitOK("pause", "--all"); pool(w); w.start() },
			reason:  "Stopped", says: "the stop switch", heldBy: []string{"ledger/refit"},
			types: []string{"kubectl refit resume --all -n refit"}, goesOn: true,
		},
		"a canary that soaks": {
			arrange: func(_ *testing.T, w *world) {
				pool(w, rolling(func(r *v1alpha1.RollingUpdate) {
					r.MaxUnavailable, r.Canary, r.Soak = ptr(intstr.FromInt32(3)), &v1alpha1.Canary{Count: 1}, &metav1.Duration{Duration: time.Hour}
				}))
				w.start()
				w.until("w1 soaks", func() bool { s := w.slot("w1"); return s != nil && s.UncordonedTime != nil })
			},
			reason: "CanaryPending", says: "the canaries of MachineDeployment workers go first, alone: w1 (Soaking)", heldBy: []string{"machine/w1"},
			until: func(w *world) time.Time { return w.slot("w1").UncordonedTime.Add(time.Hour) }, types: []string{"kubectl refit why w1 -n refit"},
		},
		"a check that is not true": {
			arrange: func(t *testing.T, w *world) {
				prometheus := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
					_, _ = fmt.Fprint(rw, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}}`)
				}))
				t.Cleanup(prometheus.Close)
				pool(w, rolling(func(r *v1alpha1.RollingUpdate) {
					r.Checks = []v1alpha1.Check{{Name: "errors", Prometheus: &v1alpha1.PrometheusCheck{URL: prometheus.URL, Query: "errors == bool 0"}}}
				}))
				w.start()
			},
			reason: "CheckFailed", says: `check "errors" of MachineDeployment workers does not pass`, heldBy: []string{"machinedeployment/workers", "check errors"},
		},
		"the owner of the host": {
			arrange: func(_ *testing.T, w *world) { w.holds("w2"); pool(w); w.start() },
			reason:  "Held", says: "inventory today", heldBy: []string{"the owner of host w2"},
		},
		"a strategy by hand": {
			arrange: func(_ *testing.T, w *world) {
				pool(w, func(d *v1alpha1.MachineDeployment) {
					d.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyManual}
				})
				w.start()
			},
			reason: "AwaitingNext", says: "spec.strategy.type of MachineDeployment workers is Manual", heldBy: []string{"machinedeployment/workers"},
			types: []string{"kubectl refit next w2 -n refit"}, goesOn: true,
		},
		"somebody's cordon": {
			arrange: func(_ *testing.T, w *world) { w.cordon("w2", true); pool(w); w.start() },
			reason:  "ForeignCordon", says: "cordoned by someone else", heldBy: []string{"node/w2"}, types: []string{"kubectl uncordon w2"}, goesOn: true,
		},
		"somebody's cordon on another machine": {
			arrange: func(_ *testing.T, w *world) { w.cordon("w1", true); pool(w); w.start() },
			reason:  "BudgetExhausted", says: "w1 cordoned by someone else", heldBy: []string{"machinedeployment/workers", "machine/w1"},
			types: []string{"kubectl uncordon w1"}, goesOn: true,
		},
		"its drain, which a budget of pods blocks": {
			arrange: func(_ *testing.T, w *world) {
				w.holds("w1", "w3")
				w.guarded("db", "w2")
				pool(w)
				w.start()
				w.until("w2 drains", func() bool { return w.slot("w2") != nil })
			},
			standing: verbs.StandingInFlight, reason: "Draining", says: "EvictionBlocked: budget db allows 0 disruptions",
			types: []string{"kubectl refit forecast machine/w2 -n refit"},
		},
		"its drain, which was blocked": {
			arrange: func(_ *testing.T, w *world) {
				w.guarded("db", "w2")
				pool(w, func(d *v1alpha1.MachineDeployment) {
					d.Spec.Template.Spec.Drain = &v1alpha1.DrainSpec{Timeout: &metav1.Duration{Duration: time.Second}}
				})
				w.start()
			},
			reason: "RetryLater", says: "default/db", heldBy: []string{"node/w2"},
			until: func(w *world) time.Time { return w.machine("w2").Status.RolloutFailure.NextRetryTime.Time },
			types: []string{"kubectl refit retry w2 -n refit"}, goesOn: true,
		},
		"a drain that can never end": {
			arrange: func(_ *testing.T, w *world) { w.pod("bare", "w2", false); pool(w); w.start() },
			reason:  "DrainImpossible", says: "default/bare has no controller", heldBy: []string{"node/w2"}, types: []string{"kubectl refit forecast machine/w2 -n refit"},
		},
		"a machine beside it that went down": {
			arrange: func(_ *testing.T, w *world) {
				pool(w, rolling(func(r *v1alpha1.RollingUpdate) { r.MaxUnavailable = ptr(intstr.FromInt32(3)) }))
				w.holds("w2", "w3")
				w.start()
				w.worksOn("w1")
				w.hosts["w3"].set(func(h *host) { h.Ready = false })
				w.until("w3 is down", func() bool { return w.condition("w3", v1alpha1.ConditionReady).Status != metav1.ConditionTrue })
				w.hosts["w2"].set(func(h *host) { h.Hold = false })
			},
			reason: "FleetDegraded", says: "w3 (not ready since", heldBy: []string{"machine/w3"}, types: []string{"kubectl describe node w3"},
		},
		"no standby to take over": {
			arrange: func(_ *testing.T, w *world) {
				pool(w, rolling(func(r *v1alpha1.RollingUpdate) {
					r.MaxUnavailable, r.MaxSurge = ptr(intstr.FromInt32(0)), ptr(intstr.FromInt32(1))
				}))
				w.start()
			},
			reason: "NoStandby", says: "a standby has to take over first, and there is none", types: []string{"kubectl edit machinedeployment workers -n refit"},
		},
		"two pools": {
			arrange: func(_ *testing.T, w *world) {
				pool(w)
				w.pool("others", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) { d.Spec.Selector.MatchLabels["pool"] = "workers" })
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"versions":{"kubelet":"`+newK8s+`"}}}`))
				require.NoError(w.t, w.admin.Patch(context.Background(), w.machine("w2"), patch))
				w.start()
			},
			reason: "DeploymentConflict", says: "MachineDeployments others, workers all select this machine", heldBy: []string{"machinedeployment/others", "machinedeployment/workers"},
			types: []string{"kubectl edit machinedeployment others -n refit", "kubectl edit machinedeployment workers -n refit"},
		},
		"a field of another manager's": {
			arrange:  func(_ *testing.T, w *world) { w.kubectl(wishOf("w2", oldK8s)); pool(w); w.start() },
			standing: verbs.StandingUpToDate, reason: "FieldsOverridden", says: "spec.versions.kubelet (owned by kubectl-client-side-apply)",
			types: []string{"kubectl refit release w2 -n refit"}, goesOn: true,
		},
	}
}
