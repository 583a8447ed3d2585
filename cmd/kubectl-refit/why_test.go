package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
)

// pending is a machine whose plan to drain is ready.
const pending = `
versions: {kubelet: v1.37.1}
assignment: {id: a, generation: 1, type: Upgrade, target: {kubelet: v1.37.2}, epoch: 1}
plan: {assignmentID: a, hash: h, disruption: Drain}
conditions:
- {type: Staged, status: "True", reason: Staged, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: Waiting, status: "True", reason: WaitingForSlot, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`

const arrived = `versions: {kubelet: v1.37.2, controlPlane: {apiServer: v1.37.2, controllerManager: v1.37.2, scheduler: v1.37.2}}`

// situation is a control plane that is done, and three workers that are not.
type situation struct {
	*bench
	machines map[string]string // what is added to the status of a worker
	spec     map[string]func(*v1alpha1.Machine)
	nodes    map[string]func(*corev1.Node)
	pool     string
	slots    []string
	after    func(*situation)
}

func (s *situation) name(short string) string { return s.namespace + "-" + short }

func (s *situation) make() {
	s.bench.pool("workers", s.pool)
	s.machine(s.name("cp"), "none", arrived, func(m *v1alpha1.Machine) { m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleControlPlane} })
	for _, short := range []string{"w1", "w2", "w3"} {
		edit := s.spec[short]
		if edit == nil {
			edit = func(*v1alpha1.Machine) {}
		}
		s.machine(s.name(short), "workers", pending+s.machines[short], edit)
	}
	for _, short := range []string{"cp", "w1", "w2", "w3"} {
		s.node(short)
	}
	if len(s.slots) > 0 {
		var states []string
		for _, slot := range s.slots {
			states = append(states, s.name(slot))
		}
		s.bench.slots(states...)
	}
	if s.after != nil {
		s.after(s)
	}
}

func (s *situation) node(short string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name(short)}}
	if edit := s.nodes[short]; edit != nil {
		edit(n)
	}
	require.NoError(s, s.client.Create(s.Context(), n))
	s.Cleanup(func() { _ = s.client.Delete(context.Background(), n) })
	n.Status.NodeInfo.KubeletVersion = "v1.37.1"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	require.NoError(s, s.client.Status().Update(s.Context(), n))
}

func TestWhyTellsWhatAMachineWaitsFor(t *testing.T) {
	next := newBenches(t)
	condition := func(kind, status, reason, message string) string {
		return fmt.Sprintf("- {type: %s, status: %q, reason: %s, message: %q, observedGeneration: 1, lastTransitionTime: \"2026-01-01T00:00:00Z\"}\n", kind, status, reason, message)
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	zone := func(z string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels = map[string]string{"zone": z} }
	}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, tc := range map[string]struct {
		of           situation
		reason, gate string
		says, hint   string // NS is the namespace, and w2 a machine of it
		holds        bool
	}{
		"the stop switch": {of: situation{after: func(s *situation) { s.bench.ok("pause", "--all") }}, reason: "Stopped", gate: "stopped", says: "stop switch", hint: "kubectl refit resume --all -n NS"},
		"its own pause":   {of: situation{spec: map[string]func(*v1alpha1.Machine){"w1": func(m *v1alpha1.Machine) { m.Spec.Paused = true }}}, reason: "Paused", gate: "paused", says: "the machine is paused", hint: "kubectl refit resume machine/NS-w1 -n NS"},
		"its pool's":      {of: situation{pool: "paused: true"}, reason: "Paused", gate: "paused", says: "MachineDeployment workers is paused", hint: "kubectl refit resume workers -n NS"},
		"two pools": {of: situation{after: func(s *situation) {
			s.bench.pool("others", "{}", func(d *v1alpha1.MachineDeployment) { d.Spec.Selector.MatchLabels["pool"] = "workers" })
		}}, reason: "DeploymentConflict", gate: "conflict", says: "others, workers", hint: "kubectl edit machinedeployment others -n NS"},
		"its owner":         {of: situation{machines: map[string]string{"w1": condition("Held", "True", "HeldByOwner", "inventory today")}}, reason: "Held", gate: "held", says: "inventory today"},
		"a cordon":          {of: situation{nodes: map[string]func(*corev1.Node){"w1": func(n *corev1.Node) { n.Spec.Unschedulable = true }}}, reason: "ForeignCordon", gate: "cordoned", says: "cordoned by someone else", hint: "kubectl uncordon NS-w1"},
		"a blocked drain":   {of: situation{machines: map[string]string{"w1": "rolloutFailure: {class: DrainBlocked, reason: BudgetHolds, message: shop/a, nextRetryTime: \"" + later + "\"}\n"}}, reason: "RetryLater", gate: "retry", says: "BudgetHolds: shop/a", hint: "kubectl refit retry NS-w1 -n NS"},
		"a drain in vain":   {of: situation{machines: map[string]string{"w1": condition("DrainPossible", "False", "PDBOverlap", "shop/a has two budgets")}}, reason: "DrainImpossible", gate: "forecast", says: "shop/a has two budgets", hint: "kubectl refit forecast machine/NS-w1 -n NS"},
		"failures":          {of: situation{machines: map[string]string{"w2": "rolloutFailure: {class: ApplyFailed, reason: HookFailed, message: smoke, terminal: true}\n"}}, reason: "FailureThresholdReached", gate: "failure-threshold", says: "NS-w2 (HookFailed)", hint: "kubectl refit retry machinedeployment/workers -n NS"},
		"the control plane": {of: situation{slots: []string{"cp=Accepted"}}, reason: "ControlPlaneBusy", gate: "control-plane", says: "NS-cp is being worked on", hint: "kubectl refit why NS-cp -n NS", holds: true},
		"another domain":    {of: situation{pool: "strategy: {rollingUpdate: {topologyKey: zone, maxUnavailable: 3}}", nodes: map[string]func(*corev1.Node){"w1": zone("b"), "w2": zone("a"), "w3": zone("b")}}, reason: "DomainBusy", gate: "topology", says: "zone=a is finished first", hint: "kubectl refit why NS-w2 -n NS"},
		"a place for pods":  {of: situation{nodes: map[string]func(*corev1.Node){"cp": tainted, "w2": tainted, "w3": tainted}}, reason: "NoCapacity", gate: "capacity", says: "no other node", hint: "kubectl get nodes"},
		"the pool's budget": {of: situation{slots: []string{"w2=Accepted"}}, reason: "BudgetExhausted", gate: "budget", says: "NS-w2 being upgraded", hint: "kubectl refit why NS-w2 -n NS", holds: true},
		"the pool's in-flight": {of: situation{slots: []string{"w2=Accepted"}, after: func(s *situation) {
			m := s.m(s.name("w1"))
			m.Status.Plan.Disruption = v1alpha1.DisruptionRestart
			require.NoError(s, s.client.Status().Update(s.Context(), m))
		}}, reason: "InFlightExhausted", gate: "budget", says: "1 machine at a time", hint: "kubectl refit why NS-w2 -n NS", holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.of
			s.bench = next(t)
			s.make()
			e := s.why("w1")
			assert.Equal(t, verbs.StandingWaiting, e.Standing)
			assert.Equal(t, tc.reason, e.Reason)
			assert.Contains(t, e.Message, s.spelt(tc.says))
			require.NotNil(t, e.Since)
			if tc.hint == "" {
				assert.Empty(t, e.Type)
			} else {
				assert.Equal(t, s.spelt(tc.hint), e.Type[0])
			}
			assert.Equal(t, tc.holds, len(e.InFlight) > 0)
			for _, j := range e.Gates {
				if !j.Passes {
					assert.Equal(t, tc.gate, j.Gate, "the first that says no")
					break
				}
			}
			out, _ := s.bench.ok("why", s.name("w1"))
			assert.Contains(t, out, "): Waiting, since ")
			assert.Regexp(t, `(?m)^`+tc.gate+` +veto +`+tc.reason+` `, out)
		})
	}
	for name, tc := range map[string]struct {
		of       situation
		standing verbs.Standing
		says     string
	}{
		"nothing holds it":         {situation{}, verbs.StandingNext, "no gate holds it"},
		"it is at work":            {situation{slots: []string{"w1=Accepted"}}, verbs.StandingInFlight, "the host has accepted"},
		"its host cannot go on":    {situation{machines: map[string]string{"w1": "hostFailure: {reason: NoSpace, message: /var is full, terminal: true}\n"}}, verbs.StandingPreparing, "NoSpace: /var is full"},
		"it runs what it is asked": {situation{machines: map[string]string{"w1": condition("UpToDate", "True", "UpToDate", "what runs is what spec wants")}}, verbs.StandingUpToDate, "what runs is what spec wants"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.of
			s.bench = next(t)
			s.make()
			e := s.why("w1")
			assert.Equal(t, tc.standing, e.Standing)
			assert.Contains(t, e.Message, tc.says)
		})
	}
	t.Run("what only the coordinator knows is told as its word", func(t *testing.T) {
		s := situation{bench: next(t), after: func(s *situation) {
			m := s.m(s.name("w1"))
			m.Status.Conditions[1].Reason, m.Status.Conditions[1].Message = "CheckFailed", "error-rate is 3"
			require.NoError(s, s.client.Status().Update(s.Context(), m))
		}}
		s.make()
		e := s.why("w1")
		assert.Equal(t, verbs.StandingNext, e.Standing)
		require.NotNil(t, e.Coordinator)
		assert.Equal(t, "CheckFailed", e.Coordinator.Reason)
		out, _ := s.bench.ok("why", s.name("w1"))
		assert.Contains(t, out, "the coordinator's last word is CheckFailed: error-rate is 3")
	})
}

func (s *situation) why(short string) verbs.Explanation {
	s.Helper()
	out, _ := s.bench.ok("why", s.name(short), "-o", "json")
	var e verbs.Explanation
	require.NoError(s, json.Unmarshal([]byte(out), &e))
	return e
}

func (s *situation) spelt(text string) string { return strings.ReplaceAll(text, "NS", s.namespace) }
