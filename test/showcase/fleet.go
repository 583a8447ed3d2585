package showcase

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Namespace of the fleet.
const Namespace = "refit"

const older, newer = "v1.36.3", "v1.37.2"

// Fleet is a control plane that is done, and workers in six zones (one, where they are few) of which most are.
type Fleet struct {
	Pools    []*v1alpha1.MachineDeployment
	Machines []*v1alpha1.Machine
	Nodes    []*corev1.Node
	Ledger   *v1alpha1.Ledger

	now time.Time
}

// New is a fleet of so many machines.
func New(machines int, now time.Time) *Fleet {
	f := &Fleet{now: now, Ledger: &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: v1alpha1.LedgerName}}}
	controllers := min(3, (machines+2)/3)
	zones := min(6, 1+machines/20)
	workers := machines - controllers
	for i := range controllers {
		m := f.machine(fmt.Sprintf("cp-%d", i+1), "control-plane", v1alpha1.RoleControlPlane, fmt.Sprintf("rack-%d", i%zones+1))
		f.done(m, 12*time.Hour-time.Duration(i)*20*time.Minute)
	}
	for i := range workers {
		m := f.machine(fmt.Sprintf("worker-%d", i+1), "workers", v1alpha1.RoleWorker, fmt.Sprintf("rack-%d", i*zones/max(1, workers)+1))
		f.stand(m, i, workers)
	}
	f.pool("control-plane", controllers)
	f.pool("workers", workers)
	return f
}

// Objects are all of them.
func (f *Fleet) Objects() []client.Object {
	out := []client.Object{f.Ledger}
	for _, d := range f.Pools {
		out = append(out, d)
	}
	for _, n := range f.Nodes {
		out = append(out, n)
	}
	for _, m := range f.Machines {
		out = append(out, m)
	}
	return out
}

func (f *Fleet) machine(name, pool string, role v1alpha1.Role, rack string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1, Labels: map[string]string{"pool": pool}}}
	m.Spec.Roles = []v1alpha1.Role{role}
	m.Spec.Versions = &v1alpha1.Versions{Kubelet: newer}
	m.Status.NodeRef = &v1alpha1.NodeRef{Name: name, UID: "node-" + name}
	m.Status.Host = &v1alpha1.HostIdentity{MachineID: name}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: older, ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.35", Text: "containerd://1.7.35"}}
	m.Status.OS = &v1alpha1.ObservedOS{PrettyName: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0-25-amd64"}
	if role == v1alpha1.RoleControlPlane {
		m.Spec.Versions.ControlPlane = newer
		m.Status.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: newer, ControllerManager: newer, Scheduler: newer}
	}
	f.Machines = append(f.Machines, m)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{corev1.LabelTopologyZone: rack}}}
	n.Status.NodeInfo.KubeletVersion = older
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	f.Nodes = append(f.Nodes, n)
	return m
}

// stand gives a worker its place in the rollout: the first two thirds are done, a few are at work, one in ninety has failed.
func (f *Fleet) stand(m *v1alpha1.Machine, i, workers int) {
	turn := workers * 2 / 3
	inFlight := max(1, workers/40)
	switch {
	case i%90 == 37 && i < turn:
		f.failed(m, f.before(i, turn))
	case i < turn:
		f.done(m, f.before(i, turn))
	case i < turn+inFlight:
		f.working(m, i-turn)
	case i%97 == 11:
		m.Spec.Paused = true
		f.outdated(m, v1alpha1.PhasePaused, "Paused", "the machine is paused (spec.paused)")
	case i%151 == 5:
		f.outdated(m, v1alpha1.PhaseUnknown, "NodeUnreachable", "the node has not been heard of for 7m")
	default:
		f.outdated(m, v1alpha1.PhaseWaiting, "BudgetExhausted", "the budget of MachineDeployment workers is used up")
	}
}

// before is how long ago the work on one of the first ended: they went evenly, over ten hours.
func (f *Fleet) before(i, turn int) time.Duration {
	return 10*time.Minute + time.Duration(turn-i)*10*time.Hour/time.Duration(turn)
}

func (f *Fleet) condition(m *v1alpha1.Machine, kind string, state metav1.ConditionStatus, reason, message string, since time.Duration) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: f.ago(since),
	})
}

func (f *Fleet) ago(d time.Duration) metav1.Time {
	return metav1.NewTime(f.now.Add(-d).Truncate(time.Second))
}

func (f *Fleet) entry(m *v1alpha1.Machine, state v1alpha1.OperationState, reason string, since time.Duration) {
	start, end := f.ago(since+9*time.Minute), f.ago(since)
	m.Status.History = append(m.Status.History, v1alpha1.HistoryEntry{
		ID: "g-" + m.Name, Type: v1alpha1.OperationUpgrade, State: state, Reason: reason, StartTime: &start, EndTime: &end,
		From: &v1alpha1.Versions{Kubelet: older}, Target: &v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: newer}},
		Phases: []v1alpha1.PhaseDuration{
			{Name: "Wait", Duration: metav1.Duration{Duration: 4 * time.Minute}}, {Name: "Drain", Duration: metav1.Duration{Duration: 150 * time.Second}},
			{Name: "Apply", Duration: metav1.Duration{Duration: 70 * time.Second}}, {Name: "Restart", Duration: metav1.Duration{Duration: 14 * time.Second}},
			{Name: "Ready", Duration: metav1.Duration{Duration: 25 * time.Second}},
		},
	})
}

func (f *Fleet) done(m *v1alpha1.Machine, since time.Duration) {
	m.Status.Phase, m.Status.Versions.Kubelet = v1alpha1.PhaseReady, newer
	f.entry(m, v1alpha1.OperationSuccessful, "", since)
	f.condition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, "NodeReady", "the node is ready and schedulable", since)
	f.condition(m, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "UpToDate", "what runs is what spec wants", since)
}

func (f *Fleet) failed(m *v1alpha1.Machine, since time.Duration) {
	m.Status.Phase = v1alpha1.PhaseFailed
	f.entry(m, v1alpha1.OperationFailed, "HookFailed", since)
	message := "hook smoke ended with exit code 1 after the change; the host was returned to what it ran before"
	m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "RolledBack", Failure: v1alpha1.Failure{Reason: "HookFailed", Message: message, Terminal: true}}
	f.condition(m, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Outdated", "kubelet runs "+older+" and is to run "+newer, since)
	f.condition(m, v1alpha1.ConditionStalled, metav1.ConditionTrue, "HookFailed", message, since)
}

func (f *Fleet) planned(m *v1alpha1.Machine) {
	m.Status.Assignment = &v1alpha1.Assignment{ID: "a-" + m.Name, Generation: 1, Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: newer}}}
	m.Status.ObservedGeneration = 1
	m.Status.Plan = &v1alpha1.PlanStatus{
		AssignmentID: "a-" + m.Name, Hash: "4c1f", Disruption: v1alpha1.DisruptionDrain,
		Steps:    []string{"take the hold off kubelet, kubectl and kubeadm", "install kubeadm " + newer, "kubeadm upgrade node", "install kubelet and kubectl " + newer, "restart kubelet.service", "hold kubelet, kubectl and kubeadm", "verify the host"},
		Findings: []v1alpha1.Finding{{Severity: "Warning", Reason: "CertificatesExpireSoon", Message: "the kubelet's client certificate ends in 21 days: kubeadm upgrade node renews it"}},
	}
	f.condition(m, v1alpha1.ConditionStaged, metav1.ConditionTrue, "Staged", "all that the plan needs is on the host", 3*time.Hour)
}

func (f *Fleet) outdated(m *v1alpha1.Machine, phase v1alpha1.Phase, reason, message string) {
	m.Status.Phase = phase
	f.planned(m)
	f.condition(m, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Outdated", "kubelet runs "+older+" and is to run "+newer, 10*time.Hour)
	f.condition(m, v1alpha1.ConditionWaiting, metav1.ConditionTrue, reason, message, 3*time.Hour)
}

// working has a slot, and has come as far as its number says.
func (f *Fleet) working(m *v1alpha1.Machine, number int) {
	f.planned(m)
	times := []metav1.Time{f.ago(14 * time.Minute), f.ago(8 * time.Minute), f.ago(5 * time.Minute), f.ago(5 * time.Minute), f.ago(2 * time.Minute), f.ago(time.Minute)}
	slot := v1alpha1.Slot{
		Machine: m.Name, MachineUID: string(m.UID), AssignmentID: "a-" + m.Name, GrantID: "g-" + m.Name, PlanHash: "4c1f",
		Disruption: v1alpha1.DisruptionDrain, State: v1alpha1.SlotReserved, WaitingTime: &times[0], ReservedTime: times[1],
	}
	m.Status.Phase = v1alpha1.PhaseDraining
	reason, message := "Draining", "2 of 14 pods are still to leave; shop/db-0 is held by PodDisruptionBudget shop/db"
	if stage := number % 4; stage > 0 {
		m.Status.Phase = []v1alpha1.Phase{"", v1alpha1.PhaseApplying, v1alpha1.PhaseVerifying, v1alpha1.PhaseSoaking}[stage]
		slot.State, slot.DrainedTime, slot.GrantedTime = v1alpha1.SlotAccepted, &times[2], &times[3]
		reason, message = "Applying", "the host has accepted"
		m.Status.Accepted = &v1alpha1.Acceptance{GrantID: slot.GrantID}
		m.Status.LastOperation = &v1alpha1.Operation{ID: slot.GrantID, Type: v1alpha1.OperationUpgrade, State: v1alpha1.OperationProcessing, Step: "install kubelet and kubectl " + newer, StepsDone: 3, StepsTotal: 7, StartTime: &times[3]}
		if stage > 1 {
			slot.State, slot.AppliedTime = v1alpha1.SlotVerifying, &times[4]
			m.Status.LastOperation.State, m.Status.LastOperation.StepsDone = v1alpha1.OperationSuccessful, 7
			m.Status.Versions.Kubelet = newer
		}
		if stage > 2 {
			slot.UncordonedTime = &times[5]
		}
	}
	f.Ledger.Spec.Slots = append(f.Ledger.Spec.Slots, slot)
	f.condition(m, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, reason, message, 8*time.Minute)
}

func (f *Fleet) pool(name string, machines int) {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1}}
	d.Spec.Selector.MatchLabels = map[string]string{"pool": name}
	d.Spec.Template.Spec.Versions = &v1alpha1.Versions{Kubelet: newer}
	s := &d.Status
	s.ObservedGeneration, s.Machines = 1, int32(machines)
	for _, m := range f.Machines {
		if m.Labels["pool"] != name {
			continue
		}
		switch m.Status.Phase {
		case v1alpha1.PhaseReady:
			s.UpToDate++
			s.Ready++
		case v1alpha1.PhaseWaiting, v1alpha1.PhasePaused:
			s.Ready++
		case v1alpha1.PhaseFailed:
			s.Failed++
			s.Ready++
		case v1alpha1.PhaseUnknown:
		default:
			s.InFlight++
		}
	}
	reason, message := "RollingOut", fmt.Sprintf("%d of %d machines are up to date", s.UpToDate, machines)
	if s.UpToDate == s.Machines {
		reason, message = "Complete", "all machines are up to date"
	}
	d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: f.ago(time.Hour)}}
	f.Pools = append(f.Pools, d)
}
