package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// host is one simulated machine: what runs on it, how it behaves, and what was done to it.
type host struct {
	w      *world
	name   string
	roles  []v1alpha1.Role
	client client.Client // the kubelet's own credential, as the agent uses it
	done   sync.WaitGroup

	mu sync.Mutex
	// what runs
	kubelet, apiServer, runtime string
	ready                       bool
	// how it behaves
	disruption  v1alpha1.Disruption
	acceptDelay time.Duration
	workTime    time.Duration
	working     <-chan struct{} // the work goes on until it is closed, and the node stays ready meanwhile
	fail        bool            // the operation fails and is rolled back
	refuse      *v1alpha1.Failure
	sick        bool // not ready after the operation
	hold        bool // /etc/refit/hold
	deaf        bool // the agent does nothing
	stuckPods   bool // pods that are evicted do not end
	// what was done, and with which state: the disk of the host
	status map[string]any
	plans  map[string]string
	runs   []string // grant ids that were carried out
}

func (w *world) host(name, pool string, roles ...v1alpha1.Role) *host {
	w.t.Helper()
	user, group := "system:node:"+name, "system:nodes"
	if w.workloads != w.server { // where the Machines are, a Node of the host's name is another host
		user, group = "system:serviceaccount:"+namespace+":refit-machine-"+name, "system:serviceaccounts"
	}
	h := &host{
		w: w, name: name, roles: roles, client: newClient(w.t, w.server.As(w.t, user, group)),
		kubelet: oldK8s, runtime: "1.7.28", ready: true, disruption: v1alpha1.DisruptionDrain, workTime: 100 * time.Millisecond,
		status: map[string]any{}, plans: map[string]string{},
	}
	if hasRole(roles, v1alpha1.RoleControlPlane) {
		h.apiServer = oldK8s
	}
	ctx := context.Background()
	require.NoError(w.t, w.workload.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"pool": pool}}}
	m.Spec.Roles = roles
	require.NoError(w.t, w.admin.Create(ctx, m))
	h.postNode()
	w.hosts[name] = h
	h.done.Add(2)
	go h.every(100*time.Millisecond, h.kubeletOnce)
	go h.every(30*time.Millisecond, h.agentOnce)
	return h
}

// set changes how the host behaves.
func (h *host) set(change func(*host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *host) ranUnder() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.runs...)
}

func (h *host) every(d time.Duration, once func() error) {
	defer h.done.Done()
	for {
		select {
		case <-h.w.ctx.Done():
			return
		case <-time.After(d):
			_ = once() // the API server may be away; the next round tries again
		}
	}
}

// --- the kubelet ---

func (h *host) kubeletOnce() error {
	h.mu.Lock()
	ready, stuck := h.ready, h.stuckPods
	h.mu.Unlock()
	if ready {
		if err := h.renewLease(); err != nil {
			return err
		}
	}
	h.postNode()
	if stuck {
		return nil
	}
	pods := &corev1.PodList{}
	if err := h.w.workload.List(context.Background(), pods); err != nil {
		return err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == h.name && p.DeletionTimestamp != nil {
			_ = h.w.workload.Delete(context.Background(), p, client.GracePeriodSeconds(0))
		}
	}
	return nil
}

func (h *host) renewLease() error {
	ctx, now := context.Background(), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: h.name}}
	err := h.w.workload.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &h.name, &now
	if apierrors.IsNotFound(err) {
		return h.w.workload.Create(ctx, lease)
	}
	return errors.Join(err, h.w.workload.Update(ctx, lease))
}

func (h *host) postNode() {
	h.mu.Lock()
	state, kubelet, runtime := corev1.ConditionFalse, h.kubelet, h.runtime
	if h.ready {
		state = corev1.ConditionTrue
	}
	h.mu.Unlock()
	n := &corev1.Node{}
	if h.w.workload.Get(context.Background(), types.NamespacedName{Name: h.name}, n) != nil {
		return
	}
	runtimeText := "containerd://" + runtime
	if len(n.Status.Conditions) == 1 && n.Status.Conditions[0].Status == state &&
		n.Status.NodeInfo.KubeletVersion == kubelet && n.Status.NodeInfo.ContainerRuntimeVersion == runtimeText {
		return
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: state, Message: "simulated", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: runtimeText}
	_ = h.w.workload.Status().Update(context.Background(), n)
}

// --- the agent ---

// agentOnce speaks the agent's side of the protocol: report, plan, accept, run, report.
func (h *host) agentOnce() error {
	h.mu.Lock()
	deaf := h.deaf
	h.mu.Unlock()
	if deaf {
		return nil
	}
	m := &v1alpha1.Machine{}
	if err := h.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: h.name}, m); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observe()
	h.plan(m)
	if err := h.accept(m); err != nil {
		return err
	}
	return h.report(m, "")
}

func (h *host) observe() {
	versions := map[string]any{
		"kubelet":          h.kubelet,
		"containerRuntime": map[string]any{"name": "containerd", "version": h.runtime, "text": "containerd://" + h.runtime},
	}
	if h.apiServer != "" {
		versions["controlPlane"] = map[string]any{"apiServer": h.apiServer, "controllerManager": h.apiServer, "scheduler": h.apiServer}
	}
	h.status["versions"] = versions
	h.status["host"] = map[string]any{"machineID": h.name}
	h.condition(v1alpha1.ConditionHeld, h.hold, "HeldByOwner", "inventory today")
}

func (h *host) condition(kind string, is bool, reason, message string) {
	conditions, _ := h.status["conditions"].(map[string]any)
	if conditions == nil {
		conditions = map[string]any{}
		h.status["conditions"] = conditions
	}
	state := "False"
	if is {
		state = "True"
	}
	if old, ok := conditions[kind].(map[string]any); ok && old["status"] == state && old["reason"] == reason && old["message"] == message {
		return
	}
	conditions[kind] = map[string]any{"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
}

func (h *host) plan(m *v1alpha1.Machine) {
	a := m.Status.Assignment
	if a == nil {
		return
	}
	h.status["observedEpoch"] = max(a.Epoch, m.Status.ObservedEpoch)
	if _, known := h.plans[a.ID]; known {
		return
	}
	if h.refuse != nil {
		h.status["hostFailure"] = map[string]any{"reason": h.refuse.Reason, "message": h.refuse.Message, "terminal": h.refuse.Terminal}
		h.condition(v1alpha1.ConditionStaged, false, h.refuse.Reason, h.refuse.Message)
		h.status["observedGeneration"] = a.Generation
		return
	}
	delete(h.status, "hostFailure")
	h.plans[a.ID] = "sha256:" + a.ID
	h.status["plan"] = map[string]any{"assignmentID": a.ID, "hash": h.plans[a.ID], "disruption": string(h.disruption), "steps": []any{"InstallPackages"}}
	h.status["observedGeneration"] = a.Generation
	h.condition(v1alpha1.ConditionStaged, true, "Staged", "all artefacts are on the host")
}

// accept follows the rule of the protocol: the acceptance is conditional on the reading
// that carried the grant, and only after it the work begins.
func (h *host) accept(m *v1alpha1.Machine) error {
	g := m.Status.Grant
	if g == nil || g.Void || h.hold || h.plans[g.AssignmentID] != g.PlanHash || g.Epoch < m.Status.ObservedEpoch {
		return nil
	}
	for _, id := range h.runs {
		if id == g.ID {
			return nil
		}
	}
	if h.acceptDelay > 0 {
		delay := h.acceptDelay
		h.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-h.w.ctx.Done():
		}
		h.mu.Lock()
		if h.w.ctx.Err() != nil {
			return h.w.ctx.Err()
		}
	}
	h.status["accepted"] = map[string]any{"grantID": g.ID}
	h.status["observedEpoch"] = g.Epoch
	if err := h.report(m, m.ResourceVersion); err != nil {
		delete(h.status, "accepted")
		if old := m.Status.Accepted; old != nil {
			h.status["accepted"] = map[string]any{"grantID": old.GrantID}
		}
		return err
	}
	h.runs = append(h.runs, g.ID)
	h.done.Add(1)
	go h.work(*g, m.Status.Assignment.Target)
	return nil
}

// work is the executor: it goes on whatever becomes of agent, API server and coordinator.
func (h *host) work(g v1alpha1.Grant, target v1alpha1.Target) {
	defer h.done.Done()
	start := time.Now().UTC().Format(time.RFC3339)
	operation := func(state string) map[string]any {
		return map[string]any{"id": g.ID, "type": "Upgrade", "state": state, "step": "InstallPackages", "stepsDone": int64(0), "stepsTotal": int64(1), "startTime": start}
	}
	h.set(func(h *host) { h.status["lastOperation"] = operation("Processing"); h.ready = h.working != nil })
	h.mu.Lock()
	d, working := h.workTime, h.working
	h.mu.Unlock()
	if working != nil {
		select {
		case <-working:
		case <-h.w.ctx.Done():
		}
	}
	time.Sleep(d)
	h.set(func(h *host) {
		end := operation("Successful")
		if h.fail {
			end["state"], end["reason"], end["rolledBack"], end["description"] = "Failed", "VerifyFailed", true, "the kubelet did not become healthy"
		} else {
			h.apply(target)
			end["stepsDone"] = int64(1)
			end["phases"] = []any{map[string]any{"name": "Apply", "duration": "3s"}, map[string]any{"name": "Restart", "duration": "1s"}}
		}
		h.ready = !h.sick
		h.status["lastOperation"] = end
		h.observe()
	})
}

func (h *host) apply(t v1alpha1.Target) {
	if t.Kubelet != "" {
		h.kubelet = string(t.Kubelet)
	}
	if t.ControlPlane != "" {
		h.apiServer = string(t.ControlPlane)
	}
	if t.ContainerRuntime != nil {
		h.runtime = string(t.ContainerRuntime.Version)
	}
}

// report applies the agent's whole part of status, as the agent does.
func (h *host) report(m *v1alpha1.Machine, resourceVersion string) error {
	fields := map[string]any{}
	for k, v := range h.status {
		if k != "conditions" {
			fields[k] = v
		}
	}
	var conditions []any
	if byType, ok := h.status["conditions"].(map[string]any); ok {
		for _, kind := range v1alpha1.AgentConditions {
			if c, there := byType[kind]; there {
				conditions = append(conditions, c)
			}
		}
	}
	fields["conditions"] = conditions
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if digest := string(text); resourceVersion == "" && digest == h.plans["reported"] {
		return nil
	} else if resourceVersion == "" {
		defer func() { h.plans["reported"] = digest }()
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(fmt.Sprintf(`{"apiVersion":"refit.dev/v1alpha1","kind":"Machine","status":%s}`, text)), &u.Object); err != nil {
		return err
	}
	u.SetNamespace(namespace)
	u.SetName(h.name)
	u.SetUID(m.UID)
	u.SetResourceVersion(resourceVersion)
	err = h.client.Status().Apply(context.Background(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("refit-agent"), client.ForceOwnership)
	if err != nil {
		h.plans["reported"] = ""
	}
	return err
}
