package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// host plays one machine with its agent and its executor, as the handshake has them.
type host struct {
	e     *Engine
	name  string
	facts upgrade.Facts
	plan  upgrade.Plan
	// planning is the assignment that is planned for, or was last.
	planning string
	// runs are the grants that were carried out: none runs twice.
	runs map[string]bool
	// away hosts neither hear nor say anything, and what they do ends when they are back.
	away     bool
	deferred []func()
	// fails is how the next operation fails; nil: it does not.
	fails *failure
	// mishap takes the place of the next operation, and late is how long the report of its end
	// takes to arrive; tests set them.
	mishap func(op v1alpha1.Operation)
	late   time.Duration
}

type failure struct {
	reason     string
	rolledBack bool
}

// when does something after a while, or as soon as the host is back after that.
func (h *host) when(d time.Duration, do func()) {
	h.e.after(d, func() {
		if h.away {
			h.deferred = append(h.deferred, do)
			return
		}
		do()
	})
}

// look is the agent's reaction to its Machine.
func (h *host) look() {
	m := h.e.world.machines[h.name]
	if m == nil || h.away {
		return
	}
	h.lookAhead(m)
	h.begin(m)
	h.accept(m)
}

// begin plans for a new assignment, and stages.
func (h *host) begin(m *v1alpha1.Machine) {
	a := m.Status.Assignment
	if a == nil || a.ID == h.planning {
		return
	}
	h.planning = a.ID
	assignment := *a
	h.when(h.e.durations.of(phaseStage, m), func() { h.staged(assignment) })
}

func (h *host) staged(a v1alpha1.Assignment) {
	m := h.e.world.machines[h.name]
	if m == nil || h.planning != a.ID {
		return // there is another one by now
	}
	plan, err := upgrade.NewPlan(upgrade.PlanInput{
		Machine: m.Name, Spec: m.Spec, Assignment: a, Facts: h.facts, Record: upgrade.RecordOf(m),
		Now: h.e.now, Estimate: true, Kubelet: m.Status.Kubelet,
	})
	now := metav1.NewTime(h.e.now)
	staged := metav1.Condition{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue, Reason: "Staged", LastTransitionTime: now, ObservedGeneration: a.Generation}
	if err != nil {
		failed := hostFailure(err)
		h.e.note(ActionBlocked, h.name, failed.Reason, failed.Message)
		h.report(func(s *v1alpha1.MachineStatus) {
			s.HostFailure, s.Plan, s.ObservedGeneration = failed, nil, a.Generation
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionStaged)
		})
		return
	}
	h.plan = plan
	h.e.note(ActionPlan, h.name, string(plan.Disruption), fmt.Sprintf("%s, staged", status.Count(len(plan.Steps), "step")))
	h.report(func(s *v1alpha1.MachineStatus) {
		s.HostFailure = nil
		s.Plan = &v1alpha1.PlanStatus{AssignmentID: a.ID, Hash: "plan-" + a.ID, Disruption: plan.Disruption}
		for _, step := range plan.Steps {
			s.Plan.Steps = append(s.Plan.Steps, step.Describe())
		}
		s.ObservedGeneration, s.ObservedEpoch = a.Generation, max(s.ObservedEpoch, a.Epoch)
		meta.SetStatusCondition(&s.Conditions, staged)
	})
}

func hostFailure(err error) *v1alpha1.Failure {
	var blocked *upgrade.Blocked
	if errors.As(err, &blocked) {
		return &v1alpha1.Failure{Reason: blocked.Reason, Message: blocked.Message, Terminal: blocked.Terminal, Attempts: 1}
	}
	return &v1alpha1.Failure{Reason: "PlanFailed", Message: err.Error(), Terminal: true, Attempts: 1}
}

// accept takes a grant for the plan that is frozen, once.
func (h *host) accept(m *v1alpha1.Machine) {
	g, p := m.Status.Grant, m.Status.Plan
	if g != nil && g.Void && g.Epoch > m.Status.ObservedEpoch {
		h.report(func(s *v1alpha1.MachineStatus) { s.ObservedEpoch = g.Epoch })
		return
	}
	if g == nil || g.Void || p == nil || p.Hash != g.PlanHash || g.Epoch < m.Status.ObservedEpoch || h.runs[g.ID] {
		return
	}
	h.runs[g.ID] = true
	a := *m.Status.Assignment
	h.e.note(ActionAccept, h.name, string(p.Disruption), "the host begins; nothing takes that back")
	start := metav1.NewTime(h.e.now)
	op := v1alpha1.Operation{ID: g.ID, Type: a.Type, State: v1alpha1.OperationProcessing, StepsTotal: int32(len(h.plan.Steps)), StartTime: &start, LastUpdateTime: &start}
	h.report(func(s *v1alpha1.MachineStatus) {
		s.Accepted, s.ObservedEpoch, s.LastOperation = &v1alpha1.Acceptance{GrantID: g.ID}, g.Epoch, &op
	})
	h.e.note(ActionApply, h.name, string(a.Type), fleet.TargetText(a.Target))
	if do := h.mishap; do != nil {
		h.mishap = nil
		do(op)
		return
	}
	if p.Disruption == v1alpha1.DisruptionReboot {
		h.e.nodeReady(h.name, corev1.ConditionUnknown, "NodeStatusUnknown", "the host restarts")
	}
	h.when(h.e.durations.of(phaseApply, m), func() { h.ended(op, a) })
}

// ended is the end of an operation: the host is what the plan makes of it, or has failed.
func (h *host) ended(op v1alpha1.Operation, a v1alpha1.Assignment) {
	m := h.e.world.machines[h.name]
	if m == nil {
		return
	}
	now := metav1.NewTime(h.e.now)
	op.LastUpdateTime, op.State, op.StepsDone = &now, v1alpha1.OperationSuccessful, op.StepsTotal
	if f := h.fails; f != nil {
		h.fails = nil
		op.State, op.Reason, op.RolledBack, op.StepsDone = v1alpha1.OperationFailed, f.reason, f.rolledBack, 0
		op.Description = "the scenario has it fail; something of it stays on the host"
		if f.rolledBack {
			op.Description = "the scenario has it fail; the host runs what it ran before"
		}
		h.e.note(ActionVerify, h.name, string(op.State), op.Description)
	} else {
		h.facts = preview.After(h.facts, a.Target, h.plan)
		h.settle(m, a.Target)
		h.e.note(ActionVerify, h.name, string(op.State), "the work has ended, and its outcome is verified")
	}
	h.postNode()
	end := func() { h.report(func(s *v1alpha1.MachineStatus) { s.LastOperation = &op }) }
	if late := h.late; late > 0 {
		h.late = 0
		h.when(late, end)
	} else {
		end()
	}
	h.when(h.e.durations.of(phaseVerify, m), func() { h.e.world.leases[h.name]++ })
}

// settle brings packages and settings to what the spec says, where they were part of the hop.
func (h *host) settle(m *v1alpha1.Machine, t v1alpha1.Target) {
	if t.ControlPlane != "" && h.facts.Control != nil && t.Etcd != "" {
		h.facts.Control.Etcd = string(t.Etcd)
	}
	if !t.OS {
		return
	}
	if m.Spec.OS != nil {
		for _, p := range m.Spec.OS.Packages {
			h.install(p)
		}
	}
	if kubelet, err := upgrade.SettledKubelet(m.Spec); err == nil {
		h.report(func(s *v1alpha1.MachineStatus) { s.Kubelet = kubelet })
	}
}

// install leaves a package as the spec wants it: where the spec names no version, some version.
func (h *host) install(p v1alpha1.Package) {
	known := slices.DeleteFunc(slices.Clone(h.facts.Packages.Installed), func(i upgrade.InstalledPackage) bool { return i.Name == p.Name })
	if p.State != v1alpha1.PackageAbsent {
		known = append(known, upgrade.InstalledPackage{Name: p.Name, Version: cmp.Or(p.Version, "1.0"), State: "installed"})
	}
	h.facts.Packages.Installed = known
}

// postNode is the kubelet's word of itself.
func (h *host) postNode() {
	h.e.world.updateNode(h.name, func(n *corev1.Node) {
		if k := h.facts.Kubelet; k != nil {
			n.Status.NodeInfo.KubeletVersion = k.Running
		}
		if r := h.facts.Runtime; r != nil {
			n.Status.NodeInfo.ContainerRuntimeVersion = r.Name + "://" + r.Running
		}
	})
	if !h.away {
		h.e.nodeReady(h.name, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	}
}

// report writes the agent's part of the status, with what runs.
func (h *host) report(change func(*v1alpha1.MachineStatus)) {
	h.e.world.updateMachine(h.name, func(m *v1alpha1.Machine) {
		change(&m.Status)
		m.Status.Versions = h.facts.Versions()
		if m.Status.OS != nil || m.Spec.OS != nil {
			m.Status.OS = h.facts.ObservedOS(m.Spec.OS)
		}
	})
}

// lookAhead tells which releases of the minors in between the host can get.
func (h *host) lookAhead(m *v1alpha1.Machine) {
	seen, wish := h.facts.Versions().ControlPlane, m.Spec.Versions
	var passed []v1alpha1.PassedMinor
	if seen != nil && wish != nil {
		for _, minor := range upgrade.MinorsBetween(seen.APIServer, string(wish.ControlPlane)) {
			passed = append(passed, v1alpha1.PassedMinor{Minor: minor, Releases: h.e.releasesOf(minor)})
		}
	}
	if !sameJSON(m.Status.PassedMinors, passed) {
		h.report(func(s *v1alpha1.MachineStatus) { s.PassedMinors = passed })
	}
}

// releasesOf a minor, newest first, as every package source offers them.
func (e *Engine) releasesOf(minor string) []v1alpha1.KubernetesVersion {
	var versions []upgrade.Version
	for _, r := range e.spec.Releases {
		if v, ok := upgrade.ParseKubernetes(string(r)); ok && v.Minor() == minor {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return []v1alpha1.KubernetesVersion{v1alpha1.KubernetesVersion(minor + ".0")}
	}
	slices.SortFunc(versions, func(a, b upgrade.Version) int {
		if a.LessThan(b) {
			return 1
		}
		return -1
	})
	out := make([]v1alpha1.KubernetesVersion, 0, len(versions))
	for _, v := range versions {
		out = append(out, v1alpha1.KubernetesVersion(v.String()))
	}
	return out
}

// goAway and comeBack are the network's doing.
func (h *host) goAway() { h.away = true }

func (h *host) comeBack() {
	h.away = false
	for _, do := range h.deferred {
		h.e.after(0, do)
	}
	h.deferred = nil
	h.e.lookSoon(h.name)
}
