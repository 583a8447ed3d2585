package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// observer judges every moment of a simulation by what is in the world, and by none of the
// code that gates and order are made of.
type observer struct {
	e       *Engine
	fail    func(format string, args ...any)
	wasDown map[string]bool // machines that were down when they got their place
	foreign map[string]bool // nodes that someone else has cordoned
	skewed  bool            // it began, or was brought, outside of its skew
	away    map[string]int  // by budget: how many were away when all had looked last
	// running are the grants that hosts carry out, ran all that they ever did, and halfway the
	// machines on which something of a failed operation stays.
	running map[string]string
	ran     map[string]bool
	halfway map[string]bool
	given   map[string]bool // grants that had a place once
}

// Watch has an engine observed by a test.
func Watch(t testing.TB, e *Engine) {
	observe(e, func(format string, args ...any) { assert.Fail(t, fmt.Sprintf(format, args...)) })
}

func observe(e *Engine, fail func(format string, args ...any)) *observer {
	o := &observer{e: e, running: map[string]string{}, ran: map[string]bool{}, halfway: map[string]bool{}, given: map[string]bool{}, wasDown: map[string]bool{}, foreign: map[string]bool{}, away: map[string]int{}, fail: func(format string, args ...any) {
		fail(e.now.Sub(e.start).String()+": "+format, args...)
	}}
	o.skewed = o.badSkew() != ""
	e.settled = o.look
	told := e.sink
	e.sink = func(entry Entry) {
		o.heard(entry)
		told(entry)
	}
	return o
}

// heard judges what is only there for a moment.
func (o *observer) heard(e Entry) {
	m := o.e.world.machines[e.Machine]
	switch e.Action {
	case ActionRelease:
		delete(o.wasDown, e.Machine)
	case ActionAccept:
		o.accepts(m)
	case ActionVerify:
		delete(o.running, e.Machine)
		o.halfway[e.Machine] = e.Reason == string(v1alpha1.OperationFailed) && strings.Contains(e.Message, "something of it stays")
	case ActionGone:
		delete(o.running, e.Machine)
	case ActionReserve:
		given := o.givenAnew(e.Machine)
		if given {
			o.quorum(m)
		}
		o.wasDown[e.Machine] = m != nil && o.down(m)
		if given && paused(o.e, m) {
			o.fail("%s has a place, and it is paused", e.Machine)
		}
	case ActionGrant:
		if slot := o.slotOf(e.Machine); slot == nil || slot.GrantID != m.Status.Grant.ID {
			o.fail("%s has a grant, and no place", e.Machine)
		}
		if paused(o.e, m) {
			o.fail("%s has a grant, and it is paused", e.Machine)
		}
	case ActionEvent:
		switch e.Reason {
		case "Cordon":
			if m != nil { // of a machine that is gone nothing happens
				o.foreign[e.Machine] = o.e.world.nodes[e.Machine] != nil && !o.e.world.nodes[e.Machine].Spec.Unschedulable
			}
		case "Uncordon", "DeleteNode":
			delete(o.foreign, e.Machine)
		}
	}
}

func paused(e *Engine, m *v1alpha1.Machine) bool {
	if m == nil || m.Spec.Paused || e.world.ledger != nil && e.world.ledger.Spec.Stopped {
		return m != nil
	}
	for _, d := range e.world.deployments {
		if d.Spec.Paused && matches(d.Spec.Selector, m) {
			return true
		}
	}
	return false
}

func matches(s metav1.LabelSelector, m *v1alpha1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && selector.Matches(labels.Set(m.Labels))
}

func (o *observer) slotOf(machine string) *v1alpha1.Slot {
	slots := o.e.world.slots()
	i := slices.IndexFunc(slots, func(s v1alpha1.Slot) bool { return s.Machine == machine })
	if i < 0 {
		return nil
	}
	return &slots[i]
}

// givenAnew says that a place is one that was never there before: not one that a backup has put
// back, nor one that is written again for a host that works already.
func (o *observer) givenAnew(machine string) bool {
	slot := o.slotOf(machine)
	if slot == nil || slot.State != v1alpha1.SlotReserved || o.given[slot.GrantID] {
		return false
	}
	o.given[slot.GrantID] = true
	return true
}

// look judges the world when everybody has looked.
func (o *observer) look() {
	o.cordons()
	o.members()
	o.places()
	for _, d := range o.e.world.deployments {
		total, limit := o.covered(d.Spec.Selector), 1
		if s := d.Spec.Strategy; s != nil && s.RollingUpdate != nil && s.RollingUpdate.MaxUnavailable != nil {
			limit = atLeastOne(*s.RollingUpdate.MaxUnavailable, len(total))
		}
		o.budget("MachineDeployment "+d.Name, total, limit)
	}
	for _, b := range o.e.world.budgets {
		total := o.covered(b.Spec.Selector)
		o.budget("MachineDisruptionBudget "+b.Name, total, allowed(b, len(total)))
	}
	if bad := o.badSkew(); bad != "" && !o.skewed {
		o.fail("%s", bad)
	}
}

// accepts: a grant is carried out once, by a host that has a place for it.
func (o *observer) accepts(m *v1alpha1.Machine) {
	grant := m.Status.Grant.ID
	if o.ran[grant] {
		o.fail("%s carries out grant %s for a second time", m.Name, grant)
	}
	if was := o.running[m.Name]; was != "" {
		o.fail("%s carries out grant %s, and %s has not ended", m.Name, grant, was)
	}
	o.ran[grant], o.running[m.Name] = true, grant
}

// places: what a host has accepted keeps its place until it has ended.
func (o *observer) places() {
	for name, grant := range o.running {
		if slot := o.slotOf(name); o.e.world.machines[name] != nil && (slot == nil || slot.GrantID != grant) {
			o.fail("%s carries out grant %s, and its place is given away: %+v", name, grant, slot)
		}
	}
}

// quorum: no member goes while another one is lost.
func (o *observer) quorum(m *v1alpha1.Machine) {
	if m == nil || !isMember(m) {
		return
	}
	for name, other := range o.e.world.machines {
		lost := o.down(other) || o.halfway[name] && !o.halfway[m.Name] && !upToDate(other)
		if name != m.Name && isMember(other) && lost {
			o.fail("%s has a place while member %s is lost", m.Name, name)
		}
	}
}

func isMember(m *v1alpha1.Machine) bool {
	return slices.Contains(m.Spec.Roles, v1alpha1.RoleControlPlane) || slices.Contains(m.Spec.Roles, v1alpha1.RoleEtcd)
}

// end: no grant is lost, and no operation either.
func (o *observer) end() {
	for name, m := range o.e.world.machines {
		if g := m.Status.Grant; g != nil && !g.Void && o.slotOf(name) == nil {
			o.fail("grant %s of %s has neither ended nor was taken back", g.ID, name)
		}
		if grant := o.running[name]; grant != "" {
			o.fail("the end of grant %s of %s was never seen", grant, name)
		}
	}
}

func atLeastOne(v intstr.IntOrString, total int) int {
	if v.Type == intstr.Int {
		return v.IntValue()
	}
	var percent int
	_, _ = fmt.Sscanf(v.StrVal, "%d%%", &percent)
	return max(total*percent/100, 1)
}

func allowed(b *v1alpha1.MachineDisruptionBudget, total int) int {
	if b.Spec.MaxUnavailable != nil {
		return b.Spec.MaxUnavailable.IntValue()
	}
	return total - b.Spec.MinAvailable.IntValue()
}

func (o *observer) covered(s metav1.LabelSelector) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	selector, err := metav1.LabelSelectorAsSelector(&s)
	for _, m := range o.e.world.machines {
		if err == nil && m.Spec.Availability != v1alpha1.AvailabilityOutOfService && selector.Matches(labels.Set(m.Labels)) {
			out = append(out, m)
		}
	}
	return out
}

// down is a machine that is away for another reason than work on it.
func (o *observer) down(m *v1alpha1.Machine) bool {
	n := o.e.world.nodes[m.Name]
	if n == nil {
		return !slices.Equal(m.Spec.Roles, []v1alpha1.Role{v1alpha1.RoleEtcd})
	}
	return !nodeWell(n) || o.foreign[m.Name]
}

func nodeWell(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// budget: work takes no more machines away than the budget has, unless they were down by themselves.
func (o *observer) budget(name string, machines []*v1alpha1.Machine, limit int) {
	taken, away := 0, 0
	for _, m := range machines {
		if m.Spec.Availability == v1alpha1.AvailabilityStandby {
			continue // it does not serve
		}
		slot := o.slotOf(m.Name)
		works := slot != nil && slot.Disruption != v1alpha1.DisruptionNone && slot.Disruption != v1alpha1.DisruptionRestart
		switch {
		case works && !o.down(m) && !o.wasDown[m.Name]:
			taken++
			away++
		case works || o.down(m):
			away++
		}
	}
	key := name
	if taken > 0 && taken > limit && limit > 0 {
		o.fail("%s: work takes %d machines away, and %d may be", name, taken, limit)
	}
	if was, seen := o.away[key]; seen && taken > was && away > limit && taken > 0 {
		o.fail("%s: a machine was taken away where %d are, and %d may be", name, away, limit)
	}
	o.away[key] = taken
}

// members of the control plane and of etcd go one at a time.
func (o *observer) members() {
	n := 0
	for _, s := range o.e.world.slots() {
		m := o.e.world.machines[s.Machine]
		if m != nil && isMember(m) {
			n++
		}
	}
	if n > 1 {
		o.fail("%d members of the control plane are worked on at once", n)
	}
}

// cordons of people stay, and ours have a slot behind them or are on their way off.
func (o *observer) cordons() {
	for name, theirs := range o.foreign {
		if n := o.e.world.nodes[name]; theirs && n != nil && !n.Spec.Unschedulable {
			o.fail("the cordon of %s was someone else's, and is gone", name)
			delete(o.foreign, name)
		}
	}
}

// badSkew says which kubelet is newer than the oldest API server, or more than three minors behind the newest.
func (o *observer) badSkew() string {
	oldest, newest := 0, 0
	number := func(text string) int {
		var major, minor, patch int
		if n, _ := fmt.Sscanf(text, "v%d.%d.%d", &major, &minor, &patch); n < 2 {
			return 0
		}
		return minor
	}
	for _, m := range o.e.world.machines {
		if v := m.Status.Versions; v != nil && v.ControlPlane != nil {
			api := number(v.ControlPlane.APIServer)
			if oldest == 0 || api < oldest {
				oldest = api
			}
			newest = max(newest, api)
		}
	}
	if newest == 0 {
		return ""
	}
	if newest-oldest > 1 {
		return fmt.Sprintf("API servers are of the minors %d to %d", oldest, newest)
	}
	for _, m := range o.e.world.machines {
		k := number(m.Status.Versions.Kubelet)
		if k != 0 && (k > oldest || newest-k > 3) {
			return fmt.Sprintf("the kubelet of %s is of minor %d, and API servers are %d to %d", m.Name, k, oldest, newest)
		}
	}
	return ""
}
