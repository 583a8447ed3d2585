package controllers

import (
	"context"
	"encoding/json"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// host is one machine with its agent, as the protocol has it; its disk outlives the coordinator.
type host struct {
	c       *cluster
	name    string
	kubelet string
	api     string
	fails   bool
	sick    bool     // not ready
	due     bool     // certificates are to be renewed
	stays   bool     // the work is one that no pod notices
	lasts   int      // rounds that the work takes
	runs    []string // grants carried out
	working int      // rounds of work that are left
	told    string   // the last report
}

func (c *cluster) host(name, pool string, roles ...v1alpha1.Role) *host {
	h := &host{c: c, name: name, kubelet: before, lasts: 2}
	if roles[0] == v1alpha1.RoleControlPlane {
		h.api = before
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"pool": pool}, Generation: 1}}
	m.Spec.Roles = roles
	require.NoError(c.t, c.api.Create(context.Background(), m))
	_, err := c.kube.CoreV1().Nodes().Create(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.hosts = append(c.hosts, h)
	h.postNode()
	return h
}

func (h *host) look(ctx context.Context) {
	m := &v1alpha1.Machine{}
	require.NoError(h.c.t, h.c.api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: h.name}, m))
	s := &m.Status
	s.Versions = &v1alpha1.ObservedVersions{Kubelet: h.kubelet}
	if h.api != "" {
		s.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: h.api, ControllerManager: h.api, Scheduler: h.api}
	}
	h.plan(m)
	h.accept(m)
	h.work(m)
	h.certificates(m)
	s.Versions.Kubelet = h.kubelet
	if h.api != "" {
		s.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: h.api, ControllerManager: h.api, Scheduler: h.api}
	}
	h.report(ctx, m)
	h.postNode()
	h.c.lease(h.name)
}

// report applies the agent's part of status.
func (h *host) report(ctx context.Context, m *v1alpha1.Machine) {
	s := m.Status
	mine := v1alpha1.MachineStatus{
		Versions: s.Versions, Plan: s.Plan, Accepted: s.Accepted, LastOperation: s.LastOperation,
		ObservedGeneration: s.ObservedGeneration, ObservedEpoch: s.ObservedEpoch,
	}
	for _, kind := range []string{v1alpha1.ConditionStaged, v1alpha1.ConditionCertificatesExpiring} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
			mine.Conditions = append(mine.Conditions, *c)
		}
	}
	text, err := json.Marshal(mine)
	require.NoError(h.c.t, err)
	if h.told == string(text) {
		return
	}
	h.told = string(text)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&mine)
	require.NoError(h.c.t, err)
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Machine"))
	u.SetNamespace(namespace)
	u.SetName(h.name)
	require.NoError(h.c.t, h.c.api.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("refit-agent"), client.ForceOwnership))
}

func (h *host) plan(m *v1alpha1.Machine) {
	s, a := &m.Status, m.Status.Assignment
	if a == nil || (s.Plan != nil && s.Plan.AssignmentID == a.ID) {
		return
	}
	s.Plan = &v1alpha1.PlanStatus{AssignmentID: a.ID, Hash: "hash-" + a.ID, Disruption: v1alpha1.DisruptionDrain}
	if h.stays = upgrade.RenewsOnly(a.Target); h.stays {
		s.Plan.Disruption = v1alpha1.DisruptionRestart
	}
	s.ObservedGeneration, s.ObservedEpoch = a.Generation, a.Epoch
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue, Reason: "Staged", LastTransitionTime: metav1.NewTime(h.c.now)})
}

func (h *host) accept(m *v1alpha1.Machine) {
	s, g := &m.Status, m.Status.Grant
	if g == nil || g.Void || s.Plan == nil || s.Plan.Hash != g.PlanHash || g.Epoch < s.ObservedEpoch {
		return
	}
	for _, id := range h.runs {
		if id == g.ID {
			return
		}
	}
	s.Accepted = &v1alpha1.Acceptance{GrantID: g.ID}
	s.ObservedEpoch = g.Epoch
	s.LastOperation = &v1alpha1.Operation{ID: g.ID, Type: m.Status.Assignment.Type, State: v1alpha1.OperationProcessing, StepsTotal: 2}
	h.runs = append(h.runs, g.ID)
	h.working = h.lasts
}

func (h *host) work(m *v1alpha1.Machine) {
	if h.working == 0 {
		return
	}
	h.working--
	if h.working > 0 {
		return
	}
	op := m.Status.LastOperation
	if h.fails {
		op.State, op.Reason, op.RolledBack = v1alpha1.OperationFailed, "VerifyFailed", true
		return
	}
	op.State, op.StepsDone = v1alpha1.OperationSuccessful, 2
	t := m.Status.Assignment.Target
	h.due = h.due && !t.Certificates && t.ControlPlane == ""
	if t.Kubelet != "" {
		h.kubelet = string(t.Kubelet)
	}
	if t.ControlPlane != "" {
		h.api = string(t.ControlPlane)
	}
}

// certificates says whether some are due, where it was ever said.
func (h *host) certificates(m *v1alpha1.Machine) {
	c := metav1.Condition{Type: v1alpha1.ConditionCertificatesExpiring, Status: metav1.ConditionTrue, Reason: upgrade.ReasonRenewalDue, LastTransitionTime: metav1.NewTime(h.c.now)}
	if !h.due {
		if meta.FindStatusCondition(m.Status.Conditions, c.Type) == nil {
			return
		}
		c.Status, c.Reason = metav1.ConditionFalse, "Valid"
	}
	meta.SetStatusCondition(&m.Status.Conditions, c)
}

func (h *host) postNode() {
	n := h.c.node(h.name)
	before := n.DeepCopy()
	n.Status.NodeInfo.KubeletVersion = h.kubelet
	state := corev1.ConditionTrue
	if h.working > 0 && !h.stays || h.sick {
		state = corev1.ConditionFalse
	}
	if len(n.Status.Conditions) == 0 || n.Status.Conditions[0].Status != state {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: state, LastTransitionTime: metav1.NewTime(h.c.now)}}
	}
	if equality.Semantic.DeepEqual(before, n) {
		return
	}
	_, err := h.c.kube.CoreV1().Nodes().UpdateStatus(context.Background(), n, metav1.UpdateOptions{})
	require.NoError(h.c.t, err)
}
