package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Hop is one window of one machine.
type Hop struct {
	Machine     string
	Target      v1alpha1.Target
	KubeadmRole v1alpha1.KubeadmRole
	Skew        v1alpha1.Skew
}

// Assignment is the assignment of the hop; its id and its epoch are the caller's.
func (h Hop) Assignment(generation int64) v1alpha1.Assignment {
	a := v1alpha1.Assignment{Generation: generation, Type: v1alpha1.OperationUpgrade, Target: h.Target, KubeadmRole: h.KubeadmRole}
	if h.Skew != (v1alpha1.Skew{}) {
		a.Skew = &h.Skew
	}
	if RenewsOnly(h.Target) {
		a.Type = v1alpha1.OperationRenewCertificates
	}
	return a
}

// NextAssignment is the next hop of one machine. Nothing to do while the wish is not
// met is a refusal as well: the difference is one that no hop can close.
func NextAssignment(fleet Fleet, m *v1alpha1.Machine) (*v1alpha1.Assignment, *Blocked) {
	host := StateOf(m, nil, nil)
	for _, h := range fleet.Hosts {
		if h.Managed && h.Name == m.Name {
			host = h // which knows its Node as well
		}
	}
	return NewView(fleet).NextAssignment(host, m)
}

// NextAssignment is the function of that name, on a parsed fleet with the machine's host in it.
func (v *View) NextAssignment(host HostState, m *v1alpha1.Machine) (*v1alpha1.Assignment, *Blocked) {
	if blocked := driftBlocks(m); blocked != nil {
		return nil, blocked
	}
	target, role, skew, blocked := v.NextTarget(host, wishOfDrifted(m, host))
	if blocked != nil {
		return nil, blocked
	}
	if Arrived(target) {
		_, reason, message := UpToDate(m.Spec, m.Status)
		if rebootOutstanding(m.Spec, m.Status) && m.Status.OS.RebootStays != "" {
			reason = ReasonRebootStays
		}
		return nil, &Blocked{Reason: reason, Message: message}
	}
	a := Hop{Machine: m.Name, Target: target, KubeadmRole: role, Skew: skew}.Assignment(m.Generation)
	a.Type = operationType(m, target)
	return &a, nil
}

// Hops is the way of a fleet from what is observed to what is wished, one window
// after another, as if every one succeeded; and why the machines that do not arrive
// stay behind.
func Hops(fleet Fleet) ([]Hop, map[string]*Blocked) {
	return JudgedHops(fleet, func(Hop) *Blocked { return nil })
}

// JudgedHops is Hops with a say for whoever knows the hosts: a machine whose hop is
// refused stays where it is, and those that wait for it wait on.
func JudgedHops(fleet Fleet, judge func(Hop) *Blocked) ([]Hop, map[string]*Blocked) {
	w := &walk{view: NewView(fleet), hosts: slices.Clone(fleet.Hosts), blocked: map[string]*Blocked{}, judge: judge}
	slices.SortStableFunc(w.hosts, func(a, b HostState) int {
		if c := oneIf(b.Managed && b.broken()) - oneIf(a.Managed && a.broken()); c != 0 {
			return c
		}
		if c := oneIf(b.isEtcd()) - oneIf(a.isEtcd()); c != 0 {
			return c
		}
		if c := oneIf(b.APIServer != NoAPIServer) - oneIf(a.APIServer != NoAPIServer); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	for w.round() {
	}
	return w.hops, w.blocked
}

// walk goes round the machines until none moves any more. A machine moves only
// forward on the way to its wish, so the walk ends.
type walk struct {
	view    *View
	hosts   []HostState
	hops    []Hop
	blocked map[string]*Blocked
	judge   func(Hop) *Blocked
}

func (w *walk) round() (moved bool) {
	for i, h := range w.hosts {
		if !h.Managed || h.Sidelined {
			continue
		}
		target, role, skew, err := w.view.NextTarget(h, h.Wish)
		delete(w.blocked, h.Name)
		if err != nil {
			w.blocked[h.Name] = err
			continue
		}
		after := h.After(target)
		if Arrived(target) {
			continue
		}
		hop := Hop{Machine: h.Name, Target: target, KubeadmRole: role, Skew: skew}
		if err := w.judge(hop); err != nil {
			w.blocked[h.Name] = err
			continue
		}
		w.hops = append(w.hops, hop)
		w.view.replace(h, after)
		w.hosts[i] = after
		moved = true
	}
	return moved
}

// Arrived says that a target asks for nothing.
func Arrived(t v1alpha1.Target) bool {
	return t.Kubelet == "" && t.ControlPlane == "" && t.Etcd == "" && t.ContainerRuntime == nil && !t.OS && !t.Certificates
}

// After is the state of the host once a target is reached.
func (h HostState) After(t v1alpha1.Target) HostState {
	h.Versions = *h.Versions.DeepCopy()
	if t.Kubelet != "" {
		h.Versions.Kubelet, h.NotReady = string(t.Kubelet), false
	}
	if v := string(t.ControlPlane); v != "" {
		h.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: v, ControllerManager: v, Scheduler: v}
		h.EtcdMoved = true // kubeadm brings the etcd of its own version
	}
	if t.Etcd != "" {
		h.Versions.Etcd = string(t.Etcd)
	}
	if r := t.ContainerRuntime; r != nil {
		h.Versions.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: string(r.Name), Version: string(r.Version), Text: string(r.Name) + "://" + string(r.Version)}
	}
	h.OSPending = h.OSPending && !t.OS
	h.RenewalDue = h.RenewalDue && !t.Certificates && t.ControlPlane == ""
	return h
}
