package fakehost

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Host is one simulated machine: what runs on it, how it behaves, and what was done to it.
// Everything but Name, Namespace, Client and Changed is changed through Set.
type Host struct {
	Name, Namespace string
	// Client has the credential that the agent writes with.
	Client client.Client
	// Changed, if any, is told when the host has something new to report.
	Changed func()

	// What runs.
	Kubelet, APIServer, Runtime string
	Ready                       bool
	// How it behaves.
	Disruption  v1alpha1.Disruption
	AcceptDelay time.Duration
	WorkTime    time.Duration
	Working     <-chan struct{} // the work goes on until it is closed, and the node stays ready meanwhile
	Fail        bool            // the operation fails and is rolled back
	Refuse      *v1alpha1.Failure
	Sick        bool                   // not ready after the operation
	Hold        bool                   // /etc/refit/hold
	Etcd        *v1alpha1.ObservedEtcd // what it sees of the members of etcd; nil where it has none

	mu      sync.Mutex
	working sync.WaitGroup
	// What was done, and with which state: the disk of the host.
	status   map[string]any
	plans    map[string]string // hash by assignment
	reported string            // the last report that went through
	runs     []string          // grant ids that were carried out
}

// New is a worker with containerd on which nothing was done yet.
func New(namespace, name, kubelet string, c client.Client) *Host {
	return &Host{
		Name: name, Namespace: namespace, Client: c, Kubelet: kubelet, Runtime: "1.7.28", Ready: true,
		Disruption: v1alpha1.DisruptionDrain, status: map[string]any{}, plans: map[string]string{},
	}
}

// Set changes how the host behaves.
func (h *Host) Set(change func(*Host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// RanUnder are the grants that were carried out.
func (h *Host) RanUnder() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(append([]string{}, h.runs...))
}

// Wait waits for the work that goes on; it ends early with the context that Look was given.
func (h *Host) Wait() { h.working.Wait() }

// Node is what the kubelet says of itself.
func (h *Host) Node() (ready bool, kubelet, runtime string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Ready, h.Kubelet, "containerd://" + h.Runtime
}

// Look speaks the agent's side of the protocol once: observe, plan, accept, run, report.
func (h *Host) Look(ctx context.Context, m *v1alpha1.Machine) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observe()
	h.plan(m)
	if err := h.accept(ctx, m); err != nil {
		return err
	}
	return h.report(ctx, m, "")
}

func (h *Host) observe() {
	versions := map[string]any{
		"kubelet":          h.Kubelet,
		"containerRuntime": map[string]any{"name": "containerd", "version": h.Runtime, "text": "containerd://" + h.Runtime},
	}
	if h.APIServer != "" {
		versions["controlPlane"] = map[string]any{"apiServer": h.APIServer, "controllerManager": h.APIServer, "scheduler": h.APIServer}
	}
	h.status["versions"] = versions
	if h.Etcd != nil {
		h.status["etcd"] = h.Etcd
	}
	h.status["host"] = map[string]any{"machineID": h.Name}
	h.condition(v1alpha1.ConditionHeld, h.Hold, "HeldByOwner", "inventory today")
}

func (h *Host) plan(m *v1alpha1.Machine) {
	a := m.Status.Assignment
	if a == nil {
		return
	}
	h.status["observedEpoch"] = max(a.Epoch, m.Status.ObservedEpoch)
	if _, known := h.plans[a.ID]; known {
		return
	}
	if h.Refuse != nil {
		h.status["hostFailure"] = map[string]any{"reason": h.Refuse.Reason, "message": h.Refuse.Message, "terminal": h.Refuse.Terminal}
		h.condition(v1alpha1.ConditionStaged, false, h.Refuse.Reason, h.Refuse.Message)
		h.status["observedGeneration"] = a.Generation
		return
	}
	delete(h.status, "hostFailure")
	h.plans[a.ID] = "sha256:" + a.ID
	h.status["plan"] = map[string]any{"assignmentID": a.ID, "hash": h.plans[a.ID], "disruption": string(h.Disruption), "steps": []any{"InstallPackages"}}
	h.status["observedGeneration"] = a.Generation
	h.condition(v1alpha1.ConditionStaged, true, "Staged", "all artefacts are on the host")
}

// accept follows the rule of the protocol: the acceptance is conditional on the reading
// that carried the grant, and only after it the work begins.
func (h *Host) accept(ctx context.Context, m *v1alpha1.Machine) error {
	g := m.Status.Grant
	if g == nil || g.Void || h.Hold || h.plans[g.AssignmentID] != g.PlanHash || g.Epoch < m.Status.ObservedEpoch || slices.Contains(h.runs, g.ID) {
		return nil
	}
	if err := h.pause(ctx, h.AcceptDelay); err != nil {
		return err
	}
	h.status["accepted"] = map[string]any{"grantID": g.ID}
	h.status["observedEpoch"] = g.Epoch
	if err := h.report(ctx, m, m.ResourceVersion); err != nil {
		delete(h.status, "accepted")
		if old := m.Status.Accepted; old != nil {
			h.status["accepted"] = map[string]any{"grantID": old.GrantID}
		}
		return err
	}
	h.runs = append(h.runs, g.ID)
	h.working.Add(1)
	go h.work(ctx, *g, m.Status.Assignment.Target)
	return nil
}

// pause lets others change the host meanwhile.
func (h *Host) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work is the executor: it goes on whatever becomes of agent, API server and coordinator.
func (h *Host) work(ctx context.Context, g v1alpha1.Grant, target v1alpha1.Target) {
	defer h.working.Done()
	start := time.Now().UTC().Format(time.RFC3339)
	operation := func(state string) map[string]any {
		return map[string]any{"id": g.ID, "type": "Upgrade", "state": state, "step": "InstallPackages", "stepsDone": int64(0), "stepsTotal": int64(1), "startTime": start}
	}
	var d time.Duration
	var working <-chan struct{}
	h.Set(func(h *Host) {
		d, working = h.WorkTime, h.Working
		h.status["lastOperation"] = operation("Processing")
		h.Ready = working != nil
	})
	if d > 0 {
		h.tell() // a host that works for no time has no progress to report
	}
	if working != nil {
		select {
		case <-working:
		case <-ctx.Done():
		}
	}
	time.Sleep(d)
	h.Set(func(h *Host) { h.end(operation("Successful"), target) })
	h.tell()
}

func (h *Host) end(operation map[string]any, target v1alpha1.Target) {
	if h.Fail {
		operation["state"], operation["reason"], operation["rolledBack"], operation["description"] = "Failed", "VerifyFailed", true, "the kubelet did not become healthy"
	} else {
		h.apply(target)
		operation["stepsDone"] = int64(1)
		operation["phases"] = []any{map[string]any{"name": "Apply", "duration": "3s"}, map[string]any{"name": "Restart", "duration": "1s"}}
	}
	h.Ready = !h.Sick
	h.status["lastOperation"] = operation
	h.observe()
}

func (h *Host) apply(t v1alpha1.Target) {
	if t.Kubelet != "" {
		h.Kubelet = string(t.Kubelet)
	}
	if t.ControlPlane != "" {
		h.APIServer = string(t.ControlPlane)
	}
	if t.ContainerRuntime != nil {
		h.Runtime = string(t.ContainerRuntime.Version)
	}
}

func (h *Host) tell() {
	if h.Changed != nil {
		h.Changed()
	}
}
