package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// counts is what is counted along the way.
type counts struct {
	open        map[string]bool // machines in service that have not arrived
	unavailable map[string]bool
	most        int
	drains      map[string]int
	arriving    map[string]bool   // what runs is what spec wants, and a place is still held
	told        map[string]string // reasons of verdicts that a machine was told
	lastChange  time.Time
}

func newCounts() counts {
	return counts{open: map[string]bool{}, unavailable: map[string]bool{}, drains: map[string]int{}, arriving: map[string]bool{}, told: map[string]string{}}
}

func (e *Engine) countDrain(machine string) { e.counts.drains[machine]++ }

// machineChanged implements changes: who has to look is as in package setup.
func (e *Engine) machineChanged(old, now *v1alpha1.Machine) {
	name := nameEither(old, now)
	e.wake(name)
	e.lookSoon(name)
	e.todo.rollout = true
	for d := range e.world.deployments {
		e.todo.deployments[d] = true
	}
	if old == nil || now == nil || !fleet.SameToPlanner(old, now) {
		e.changes.Add()
	}
	e.wakeConcerned(old, now)
	e.recount(name)
	if now == nil {
		e.note(ActionGone, name, "", "the Machine is no more; the host stays as it is")
		return
	}
	if old != nil {
		e.tellMachine(old, now)
	}
}

func nameEither(old, now *v1alpha1.Machine) string {
	if now != nil {
		return now.Name
	}
	return old.Name
}

// wakeConcerned wakes the machines whose next hop may depend on this one's versions.
func (e *Engine) wakeConcerned(old, now *v1alpha1.Machine) {
	state := func(m *v1alpha1.Machine) upgrade.HostState {
		if m == nil {
			return upgrade.HostState{}
		}
		return upgrade.StateOf(m, nil, nil)
	}
	was, is := state(old), state(now)
	if sameState(was, is) {
		return
	}
	if was.APIServer != upgrade.NoAPIServer || is.APIServer != upgrade.NoAPIServer {
		for _, name := range e.world.sorted {
			e.wake(name)
		}
		return
	}
	for _, name := range e.world.sorted {
		if slices.Contains(e.world.machines[name].Spec.Roles, v1alpha1.RoleControlPlane) {
			e.wake(name)
		}
	}
}

// tellMachine writes down what is news of a machine.
func (e *Engine) tellMachine(old, now *v1alpha1.Machine) {
	if f := now.Status.RolloutFailure; f != nil && (old.Status.RolloutFailure == nil || old.Status.RolloutFailure.Reason != f.Reason || old.Status.RolloutFailure.Attempts != f.Attempts) {
		e.note(ActionFail, now.Name, f.Reason, f.Message)
	}
	if g := now.Status.Grant; g != nil && (old.Status.Grant == nil || *old.Status.Grant != *g) && !g.Void {
		e.note(ActionGrant, now.Name, string(e.disruptionOf(now.Name)), "the host may carry out its plan now")
	}
	if a := now.Status.Assignment; a != nil && (old.Status.Assignment == nil || old.Status.Assignment.ID != a.ID) {
		e.note(ActionAssign, now.Name, string(a.Type), assignmentText(a))
	}
	if old.Spec.Paused != now.Spec.Paused {
		e.tellPause(now.Spec.Paused, now.Name, "the machine")
	}
	e.tellUpToDate(old, now)
}

func assignmentText(a *v1alpha1.Assignment) string {
	text := "next hop: " + fleet.TargetText(a.Target)
	if a.KubeadmRole == v1alpha1.KubeadmFirst {
		text += "; first of the control plane"
	}
	return text
}

func (e *Engine) tellPause(paused bool, machine, what string) {
	if paused {
		e.note(ActionPause, machine, "Paused", what+" is paused: nothing new is granted, and what was accepted goes on")
		return
	}
	e.note(ActionResume, machine, "Resumed", what+" goes on")
}

// progress are the reasons of UpToDate that say only how far a machine is; the transcript has
// other lines for that.
var progress = []string{
	status.ReasonStaging, status.ReasonDraining, status.ReasonDrained, status.ReasonApplying, status.ReasonVerifying,
	status.ReasonWaitingForSlot, status.ReasonOutdated, status.ReasonAgentNotReported, status.ReasonUpToDate, "Staged",
}

func (e *Engine) tellUpToDate(old, now *v1alpha1.Machine) {
	was := meta.FindStatusCondition(old.Status.Conditions, v1alpha1.ConditionUpToDate)
	is := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionUpToDate)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionTrue:
		if was != nil && was.Status != metav1.ConditionTrue {
			e.counts.arriving[now.Name] = true
			e.tellDone(now.Name)
		}
	case was != nil && was.Status == is.Status && was.Reason == is.Reason, slices.Contains(progress, is.Reason):
	case now.Status.RolloutFailure != nil && now.Status.RolloutFailure.Reason == is.Reason: // it was told as a failure
	case now.Status.HostFailure != nil && now.Status.HostFailure.Reason == is.Reason: // likewise
	default:
		e.note(ActionWait, now.Name, is.Reason, e.momentary(now.Name, is.Message))
	}
}

// momentary is what a Machine says of its waiting, with what of it is of this moment.
func (e *Engine) momentary(name, message string) string {
	if v, held := e.verdictOf(name); held {
		return strings.Replace(message, v.Message, v.Text(), 1)
	}
	return message
}

// tellDone says that a machine has arrived, once its place is free as well.
func (e *Engine) tellDone(name string) {
	m := e.world.machines[name]
	if !e.counts.arriving[name] || m == nil || e.disruptionOf(name) != "" {
		return
	}
	delete(e.counts.arriving, name)
	if upToDate(m) {
		e.note(ActionDone, name, status.ReasonUpToDate, "what runs is what spec wants")
	}
}

func (e *Engine) disruptionOf(machine string) v1alpha1.Disruption {
	for _, s := range e.world.slots() {
		if s.Machine == machine {
			return s.Disruption
		}
	}
	return ""
}

// deploymentChanged implements changes.
func (e *Engine) deploymentChanged(old, now *v1alpha1.MachineDeployment) {
	e.todo.deployments[now.Name] = true
	if old == nil || old.Generation != now.Generation || !sameJSON(old.Annotations, now.Annotations) {
		e.todo.rollout, e.todo.urgent = true, true
		for _, name := range e.world.sorted {
			e.wake(name)
		}
		for d := range e.world.deployments {
			e.todo.deployments[d] = true
		}
	}
	if old == nil {
		return
	}
	if old.Spec.Paused != now.Spec.Paused {
		e.tellPause(now.Spec.Paused, "", "MachineDeployment "+now.Name)
	}
	was, is := meta.FindStatusCondition(old.Status.Conditions, v1alpha1.ConditionProgressing), meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionProgressing)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		e.note(ActionRollout, "", is.Reason, fmt.Sprintf("MachineDeployment %s: %s", now.Name, is.Message))
	}
}

// budgetChanged implements changes.
func (e *Engine) budgetChanged() { e.todo.rollout = true }

// nodeChanged implements changes.
func (e *Engine) nodeChanged(old, now *corev1.Node) {
	was, is := fleet.NodeOf(old), fleet.NodeOf(now)
	if sameJSON(was, is) {
		return
	}
	e.changes.Add()
	name := ""
	if now != nil {
		name = now.Name
	} else {
		name = old.Name
	}
	e.wake(name)
	e.todo.rollout = true
	e.recount(name)
	if len(e.world.pods) > 0 {
		e.todo.pods = true
		e.world.podNews++
	}
	if was != nil && is != nil {
		e.cordonChanged(name, was, is)
	}
}

func (e *Engine) cordonChanged(name string, was, is *fleet.Node) {
	marked, cordoned := is.CordonedBy != "" || is.FoundCordonedBy != "", was.CordonedBy != "" || was.FoundCordonedBy != ""
	switch {
	case marked && !cordoned && is.CordonedBy != "":
		e.note(ActionCordon, name, "", "the node takes no new pods")
	case marked && !cordoned:
		e.note(ActionCordon, name, "ForeignCordon", "someone else has cordoned the node, and the cordon stays theirs")
	case !marked && cordoned && !is.Unschedulable:
		e.note(ActionUncordon, name, "", "the node takes pods again")
	case !marked && cordoned:
		e.note(ActionUncordon, name, "ForeignCordon", "the cordon of someone else stays")
	}
}

// ledgerChanged implements changes.
func (e *Engine) ledgerChanged(old, now *v1alpha1.Ledger) {
	e.todo.rollout = true
	for d := range e.world.deployments {
		e.todo.deployments[d] = true
	}
	before := map[string]*v1alpha1.Slot{}
	if old != nil {
		for i := range old.Spec.Slots {
			before[old.Spec.Slots[i].GrantID] = &old.Spec.Slots[i]
		}
	}
	if old != nil && old.Spec.Stopped != now.Spec.Stopped {
		for _, name := range e.world.sorted {
			e.wake(name)
		}
	}
	for i := range now.Spec.Slots {
		slot := &now.Spec.Slots[i]
		was := before[slot.GrantID]
		delete(before, slot.GrantID)
		if was == nil || !sameSlot(was, slot) {
			e.slotChanged(was, slot)
		}
	}
	gone := make([]*v1alpha1.Slot, 0, len(before))
	for _, slot := range before {
		gone = append(gone, slot)
	}
	slices.SortFunc(gone, func(a, b *v1alpha1.Slot) int { return cmp.Compare(a.Machine, b.Machine) })
	for _, slot := range gone {
		e.wake(slot.Machine)
		e.recount(slot.Machine)
		e.note(ActionRelease, slot.Machine, string(slot.State), "its place is free")
		e.tellDone(slot.Machine)
	}
}

// sameSlot compares what changes of a slot.
func sameSlot(a, b *v1alpha1.Slot) bool {
	return a.State == b.State && (a.UncordonedTime == nil) == (b.UncordonedTime == nil)
}

func (e *Engine) slotChanged(was, slot *v1alpha1.Slot) {
	e.wake(slot.Machine)
	e.recount(slot.Machine)
	if was == nil {
		e.note(ActionReserve, slot.Machine, string(slot.Disruption), "it has a place")
		return
	}
	if was.UncordonedTime == nil && slot.UncordonedTime != nil {
		if soak := e.soakOf(slot.Machine); soak > 0 {
			e.note(ActionSoak, slot.Machine, "", "it has to stay well for "+soak.String())
		}
	}
}

// soaking says that a machine is given back, and that its place is held until a time.
func (e *Engine) soaking(machine string) bool {
	_, soaks := e.soakEnd(machine)
	return soaks
}

// soakEnd is when a machine that soaks will have soaked.
func (e *Engine) soakEnd(machine string) (time.Time, bool) {
	for _, s := range e.world.slots() {
		if s.Machine == machine && s.State == v1alpha1.SlotVerifying && s.UncordonedTime != nil {
			end := s.UncordonedTime.Add(e.soakOf(machine))
			return end, end.After(e.now)
		}
	}
	return time.Time{}, false
}

func (e *Engine) soakOf(machine string) time.Duration {
	m := e.world.machines[machine]
	if m == nil {
		return 0
	}
	for _, d := range e.world.deployments {
		selector, err := fleet.SelectorOf(d.Spec.Selector)
		if err != nil || !selector.Matches(labelsOf(m)) || d.Spec.Strategy == nil || d.Spec.Strategy.RollingUpdate == nil {
			continue
		}
		if soak := d.Spec.Strategy.RollingUpdate.Soak; soak != nil {
			return soak.Duration
		}
	}
	return 0
}

// podsChanged implements changes.
func (e *Engine) podsChanged() { e.todo.pods = true }

// recount looks whether a machine serves, and whether it has arrived.
func (e *Engine) recount(name string) {
	m := e.world.machines[name]
	if m == nil {
		delete(e.counts.open, name)
		delete(e.counts.unavailable, name)
		return
	}
	view := &fleet.Machine{Machine: m, Node: fleet.NodeOf(e.world.nodes[name])}
	for _, s := range e.world.slots() {
		if s.Machine == name {
			view.Slot = &s
			break
		}
	}
	set(e.counts.open, name, !view.OutOfService() && !upToDate(m))
	set(e.counts.unavailable, name, view.Unavailable() != "")
	e.counts.most = max(e.counts.most, len(e.counts.unavailable))
}

func set(of map[string]bool, name string, is bool) {
	if is {
		of[name] = true
	} else {
		delete(of, name)
	}
}

// recorder takes the events that the controllers tell people, as far as no object shows them.
type recorder struct{ e *Engine }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(regarding runtime.Object, _ runtime.Object, _, reason, action, text string, args ...any) {
	m, ok := regarding.(*v1alpha1.Machine)
	if !ok {
		return
	}
	message := fmt.Sprintf(text, args...)
	switch {
	case action == "TakeBack":
		r.e.note(ActionTakeBack, m.Name, reason, message)
	case reason == "NodeReplaced", reason == "DrainIncomplete", reason == v1alpha1.ConditionDrifted,
		reason == status.ReasonUncordoned && action == "Uncordon":
		r.e.note(ActionWait, m.Name, reason, message)
	}
}
