package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deed is what an action of the scenario does.
type deed struct {
	machine bool     // it needs one
	object  bool     // it needs one
	patch   bool     // it needs one
	check   bool     // it needs one, and its answer
	kinds   []string // of objects that it can be done to; nil: all
	do      func(e *Engine, ev *Event) error
}

// deeds by the action's name. They are set in init since they speak of one another.
var deeds map[string]deed

func init() {
	pausable := []string{"Machine", "MachineDeployment"}
	deletable := []string{"Machine", "Node", "Pod", "PodDisruptionBudget", "MachineDisruptionBudget"}
	deeds = map[string]deed{
		"NodeNotReady": {machine: true, do: (*Engine).nodeNotReady},
		"NodeReady":    {machine: true, do: (*Engine).nodeComesBack},
		"DeleteNode":   {machine: true, do: func(e *Engine, ev *Event) error { e.world.removeNode(ev.Machine); return nil }},
		"CreateNode":   {machine: true, do: (*Engine).createNode},
		"Cordon":       {machine: true, do: (*Engine).cordon},
		"Uncordon":     {machine: true, do: (*Engine).uncordon},
		"Patch":        {object: true, patch: true, do: (*Engine).patch},
		"Pause":        {object: true, kinds: pausable, do: func(e *Engine, ev *Event) error { return e.pause(ev, true) }},
		"Resume":       {object: true, kinds: pausable, do: func(e *Engine, ev *Event) error { return e.pause(ev, false) }},
		"Retry":        {object: true, kinds: pausable, do: (*Engine).retry},
		"FailApply":    {machine: true, do: (*Engine).failApply},
		"SetCheck":     {check: true, do: func(e *Engine, ev *Event) error { e.checker.set(ev.Check, *ev.Passes); return nil }},
		"StopAll":      {do: func(e *Engine, _ *Event) error { e.stop(true); return nil }},
		"ResumeAll":    {do: func(e *Engine, _ *Event) error { e.stop(false); return nil }},
		"Delete":       {object: true, kinds: deletable, do: (*Engine).remove},
	}
}

// Actions that events may have.
func Actions() []string { return slices.Sorted(maps.Keys(deeds)) }

func (e *Engine) addEvents(events []Event) error {
	for i := range events {
		ev := events[i]
		field := func(name string) string { return fmt.Sprintf("spec.events[%d].%s", i, name) }
		at, err := e.timeOf(ev.At)
		if err != nil {
			return &InputError{Field: field("at"), Message: err.Error()}
		}
		if ev.Machine != "" && ev.Object == "" {
			ev.Object = "Machine/" + ev.Machine
		}
		if err := e.judgeEvent(&ev, field); err != nil {
			return err
		}
		if at.After(e.until) {
			continue // nobody waits for what is not played any more
		}
		e.scripted++
		e.queue.add(at, func() { e.happen(i, &ev) })
	}
	return nil
}

// judgeEvent says what is missing or wrong of an event.
func (e *Engine) judgeEvent(ev *Event, field func(string) string) error {
	d, known := deeds[ev.Action]
	switch {
	case !known:
		return &InputError{Field: field("action"), Message: fmt.Sprintf("%q is no action: it is %s", ev.Action, strings.Join(Actions(), ", "))}
	case d.machine && ev.Machine == "":
		return &InputError{Field: field("machine"), Message: ev.Action + " needs the name of a machine"}
	case d.object && ev.Object == "":
		return &InputError{Field: field("object"), Message: ev.Action + " needs an object, such as MachineDeployment/workers"}
	case d.patch && ev.Patch == nil:
		return &InputError{Field: field("patch"), Message: ev.Action + " needs a merge patch, such as {spec: {paused: true}}"}
	}
	if d.check {
		if err := e.checkOf(ev, field); err != nil {
			return err
		}
	}
	if err := e.named(ev); err != nil {
		return &InputError{Field: field(cmp.Or(map[bool]string{true: "machine"}[ev.Machine != ""], "object")), Message: err.Error()}
	}
	if kind, _, _ := objectKey(ev.Object); len(d.kinds) > 0 && !slices.Contains(d.kinds, kind) {
		return &InputError{Field: field("object"), Message: fmt.Sprintf("%s is not for a %s: name a %s", ev.Action, kind, strings.Join(d.kinds, ", or a "))}
	}
	if d.patch {
		return judgePatch(ev, field("patch"))
	}
	return nil
}

// checkOf says what is wrong with the answer that an event gives.
func (e *Engine) checkOf(ev *Event, field func(string) string) error {
	if ev.Check == "" {
		return &InputError{Field: field("check"), Message: ev.Action + " needs the name of a check"}
	}
	if ev.Passes == nil {
		return &InputError{Field: field("passes"), Message: ev.Action + " needs to say whether the check passes: true or false"}
	}
	if why := e.answerable(ev.Check); why != "" {
		return &InputError{Field: field("check"), Message: why}
	}
	return nil
}

// timeOf reads 10m or a time in RFC 3339.
func (e *Engine) timeOf(text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return e.start.Add(d.Round(time.Second)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return at, fmt.Errorf("%q is no time: give how long after the start, such as 10m, or a time such as %s", text, e.start.Add(time.Hour).Format(time.RFC3339))
	case at.Before(e.start):
		return at, fmt.Errorf("%s is before the start, %s", text, e.start.Format(time.RFC3339))
	}
	return at.UTC().Truncate(time.Second), nil
}

// named says whether what the event is about is in the scenario.
func (e *Engine) named(ev *Event) error {
	if ev.Object == "" {
		return nil
	}
	kind, key, err := objectKey(ev.Object)
	if err != nil {
		return err
	}
	there := false
	switch kind {
	case "Machine":
		there = e.world.machines[key.Name] != nil
	case "MachineDeployment":
		there = e.world.deployments[key.Name] != nil
	case "MachineDisruptionBudget":
		there = e.world.budgets[key.Name] != nil
	case "Node":
		there = e.world.nodes[key.Name] != nil
	case "Pod":
		there = e.world.pods[key] != nil
	case "PodDisruptionBudget":
		there = e.world.podBudgets[key] != nil
	default:
		return fmt.Errorf("%s is no kind that an event may name: it is Machine, MachineDeployment, MachineDisruptionBudget, Node, Pod or PodDisruptionBudget", kind)
	}
	if !there {
		return fmt.Errorf("there is no %s in the scenario", ev.Object)
	}
	return nil
}

// objectKey reads Kind/name or Kind/namespace/name.
func objectKey(text string) (kind string, key types.NamespacedName, err error) {
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		return parts[0], types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: parts[1]}, nil
	case 3:
		return parts[0], types.NamespacedName{Namespace: parts[1], Name: parts[2]}, nil
	}
	return "", key, fmt.Errorf("%q names no object: write Kind/name, or Kind/namespace/name of pods and their budgets", text)
}

// happen carries an event out. One whose object has gone meanwhile comes to nothing.
func (e *Engine) happen(at int, ev *Event) {
	e.scripted--
	_, key, _ := objectKey(ev.Object)
	machine := ""
	if strings.HasPrefix(ev.Object, "Machine/") {
		machine = key.Name
	}
	e.note(ActionEvent, machine, ev.Action, eventText(ev))
	if e.named(ev) != nil {
		return
	}
	if err := deeds[ev.Action].do(e, ev); err != nil {
		e.fail(&InputError{Field: fmt.Sprintf("spec.events[%d]", at), Message: err.Error()})
	}
}

func eventText(ev *Event) string {
	text := ev.Object
	if ev.Patch != nil {
		text += " " + string(ev.Patch.Raw)
	}
	if ev.Check != "" && ev.Passes != nil {
		text += fmt.Sprintf("check %q %s", ev.Check, map[bool]string{true: "passes", false: "does not pass"}[*ev.Passes])
	}
	if ev.Reason != "" {
		text += " (" + ev.Reason + ")"
	}
	return strings.TrimSpace(text)
}

func (e *Engine) nodeNotReady(ev *Event) error {
	if h := e.hosts[ev.Machine]; h != nil {
		h.goAway()
	}
	e.nodeReady(ev.Machine, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
	return nil
}

func (e *Engine) nodeComesBack(ev *Event) error {
	e.nodeReady(ev.Machine, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	if h := e.hosts[ev.Machine]; h != nil {
		h.comeBack()
	}
	e.world.leases[ev.Machine]++
	return nil
}

func (e *Engine) createNode(ev *Event) error {
	m := e.world.machines[ev.Machine]
	if e.world.nodes[ev.Machine] != nil || m == nil {
		return nil
	}
	e.replaced++
	n := newNode(m, nil)
	n.UID = types.UID(fmt.Sprintf("node-%s-%d", m.Name, e.replaced))
	nodeReady(n, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", e.now)
	e.world.putNode(n)
	if h := e.hosts[ev.Machine]; h != nil {
		h.postNode()
		e.after(e.durations.of(phaseVerify, m), func() { e.world.leases[m.Name]++ })
	}
	return nil
}

func (e *Engine) cordon(ev *Event) error {
	e.world.updateNode(ev.Machine, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	return nil
}

// uncordon is what kubectl uncordon does: it knows no markers.
func (e *Engine) uncordon(ev *Event) error {
	e.world.updateNode(ev.Machine, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	return nil
}

func (e *Engine) failApply(ev *Event) error {
	rolledBack := ev.RolledBack == nil || *ev.RolledBack
	if h := e.hosts[ev.Machine]; h != nil {
		h.fails = &failure{reason: cmp.Or(ev.Reason, "StepFailed"), rolledBack: rolledBack}
	}
	return nil
}

func (e *Engine) stop(stopped bool) {
	l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: e.world.namespace, Name: v1alpha1.LedgerName}}
	if e.world.ledger != nil {
		l = e.world.ledger.DeepCopy()
	}
	l.Spec.Stopped = stopped
	e.world.putLedger(l)
}

func (e *Engine) pause(ev *Event, paused bool) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"paused": paused}})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	return e.patchObject(ev.Object, patch)
}

func (e *Engine) retry(ev *Event) error {
	if kind, key, err := objectKey(ev.Object); err == nil && kind == "Machine" {
		e.world.updateMachine(key.Name, func(m *v1alpha1.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationRetry, e.now.UTC().Format(time.RFC3339))
		})
		return nil
	}
	annotations := map[string]any{v1alpha1.AnnotationRetry: e.now.UTC().Format(time.RFC3339)}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	return e.patchObject(ev.Object, patch)
}

func (e *Engine) patch(ev *Event) error { return e.patchObject(ev.Object, ev.Patch.Raw) }

// remove deletes an object. A Machine goes when its finalizer does.
func (e *Engine) remove(ev *Event) error {
	kind, key, err := objectKey(ev.Object)
	if err != nil {
		return err
	}
	switch kind {
	case "Machine":
		e.world.updateMachine(key.Name, func(m *v1alpha1.Machine) {
			if m.DeletionTimestamp.IsZero() {
				now := metav1.NewTime(e.now)
				m.DeletionTimestamp = &now
			}
		})
	case "Node":
		e.world.removeNode(key.Name)
	case "Pod":
		e.gone(key, "")
	case "PodDisruptionBudget":
		e.world.removePodBudget(key)
	case "MachineDisruptionBudget":
		delete(e.world.budgets, key.Name)
		e.budgetChanged()
	default:
		return fmt.Errorf("a %s is not deleted in a simulation", kind)
	}
	return nil
}

func (w *world) removePodBudget(key types.NamespacedName) {
	delete(w.podBudgets, key)
	w.matching[key.Namespace] = slices.DeleteFunc(w.matching[key.Namespace], func(m *podMatch) bool { return m.key == key })
	w.podsNews()
}
