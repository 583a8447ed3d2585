package api

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// wideRole grants more than Refit ever does, so that what is refused is refused by the policy.
const wideRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: too-wide}
rules: [{apiGroups: [refit.dev], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: too-wide}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: too-wide}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:p1"}
  - {kind: ServiceAccount, namespace: refit, name: refit-machine-p1}
  - {kind: ServiceAccount, namespace: refit-system, name: refit-coordinator}
`

// agentFields and coordinatorFields hold one value for each status field.
var agentFields = map[string]string{
	"host": "{machineID: m}", "versions": "{kubelet: v1.37.2}", "os": "{id: debian}", "kubelet": "{dropIn: d}",
	"plan":     "{assignmentID: a, hash: h, disruption: None}",
	"accepted": "{grantID: g}", "lastOperation": "{id: g, type: Upgrade, state: Failed, stepsDone: 0, stepsTotal: 1}",
	"hostFailure": "{reason: R, message: M}", "passedMinors": "[{minor: v1.36}]", "requestedAPIs": "[{name: a, removedIn: v1.38}]", "etcd": "{members: 3, healthy: 3}", "etcdSnapshot": "{path: /p, revision: 1, sha256: a, time: '2026-01-01T00:00:00Z'}", "certificateEndTime": "'2027-01-01T00:00:00Z'", "observedGeneration": "1", "observedEpoch": "1",
}

var coordinatorFields = map[string]string{
	"nodeRef":    "{name: p1, uid: u}",
	"assignment": "{id: a, generation: 1, type: Upgrade, target: {}, epoch: 1}",
	"grant":      "{id: g, assignmentID: a, planHash: h, epoch: 1}",
	"role":       "Serving", "phase": "Ready", "rolloutFailure": "{class: ApplyFailed, reason: R, message: M}",
	"observedRetry": "again",
	"history":       "[{id: g, type: Upgrade, state: Failed}]",
}

func TestEveryStatusFieldHasExactlyOneWriter(t *testing.T) {
	s := reflect.TypeFor[v1alpha1.MachineStatus]()
	for i := range s.NumField() {
		name, _, _ := strings.Cut(s.Field(i).Tag.Get("json"), ",")
		if name == "conditions" {
			continue
		}
		_, agent := agentFields[name]
		_, coordinator := coordinatorFields[name]
		assert.NotEqual(t, agent, coordinator, "status.%s needs a writer: name it in one of deploy/policy/*.yaml and here", name)
	}
	assert.Equal(t, s.NumField()-1, len(agentFields)+len(coordinatorFields))
}

func TestThePoliciesListTheAgentsConditions(t *testing.T) {
	for _, name := range []string{"agent.yaml", "coordinator.yaml"} {
		f := filepath.Join(deployRoot, "policy", name)
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		m := regexp.MustCompile(`name: agentConditions\n\s+expression: "\[(.*)\]"`).FindSubmatch(text)
		require.NotNil(t, m, f)
		assert.Equal(t, "'"+strings.Join(v1alpha1.AgentConditions, "', '")+"'", string(m[1]), f)
	}
}

func TestTheAgentWritesItsOwnStatusFieldsOnly(t *testing.T) {
	prepareMatrix(t)
	for name, agent := range map[string]dynamic.Interface{
		"by the kubelet's certificate": as(t, "system:node:p1", "system:nodes"),
		"by its ServiceAccount":        asServiceAccount(t, namespace, "refit-machine-p1"),
	} {
		t.Run(name, func(t *testing.T) {
			for field, value := range agentFields {
				require.NoError(t, applyStatus(t, agent, "p1", "refit-agent", field+": "+value), field)
			}
			for field, value := range coordinatorFields {
				err := applyStatus(t, agent, "p1", "refit-agent", field+": "+value)
				requireDenied(t, err, "status."+field+" is written by the coordinator, not by the agent")
			}
			for _, c := range v1alpha1.AgentConditions {
				require.NoError(t, applyStatus(t, agent, "p1", "refit-agent", conditions(c)), c)
			}
			for _, c := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate, v1alpha1.ConditionDrained, "Anything"} {
				err := applyStatus(t, agent, "p1", "refit-agent", conditions(c))
				requireDenied(t, err, "an agent may only write the conditions "+strings.Join(v1alpha1.AgentConditions, ", ")+"; the others are written by the coordinator")
			}
		})
	}
}

func TestAnAgentCannotRemoveWhatTheCoordinatorWrote(t *testing.T) {
	prepareMatrix(t)
	setStatus(t, "p1", "grant: {id: g, assignmentID: a, planHash: h, epoch: 1}")
	setStatus(t, "p1", conditions(v1alpha1.ConditionUpToDate, v1alpha1.ConditionStaged))
	agent := as(t, "system:node:p1", "system:nodes")
	requireDenied(t, patchStatus(t, agent, "p1", "grant: null"), "status.grant is written by the coordinator")
	requireDenied(t, patchStatus(t, agent, "p1", "grant: {void: true}"), "status.grant is written by the coordinator")
	requireDenied(t, patchStatus(t, agent, "p1", conditions(v1alpha1.ConditionStaged)), "an agent may only write the conditions")
	requireDenied(t, patchStatus(t, agent, "p1", "conditions: null"), "an agent may only write the conditions")
	require.NoError(t, patchStatus(t, agent, "p1", conditions(v1alpha1.ConditionUpToDate)), "its own condition may go")
}

func TestAnAgentTouchesNothingButTheStatusOfItsMachine(t *testing.T) {
	prepareMatrix(t)
	agent := as(t, "system:node:p1", "system:nodes")
	const statusOnly = "an agent may only write the status of its own Machine, never a spec, labels, finalizers or another object of Refit"

	requireDenied(t, applyStatus(t, agent, "p2", "refit-agent", "host: {machineID: evil}"), "system:node:p1 may only write the Machine of its own name, not refit/p2")
	for name, patch := range map[string]string{
		"spec":            `{"spec":{"paused":true}}`,
		"labels":          `{"metadata":{"labels":{"refit.dev/pool":"other"}}}`,
		"annotations":     `{"metadata":{"annotations":{"refit.dev/retry":"1"}}}`,
		"finalizers":      `{"metadata":{"finalizers":["a/b"]}}`,
		"ownerReferences": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"p1","uid":"u"}]}}`,
	} {
		_, err := machines(agent).Patch(t.Context(), "p1", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
		requireDenied(t, err, statusOnly)
		_, err = machines(agent).Patch(t.Context(), "p1", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, "status")
		if err == nil {
			got, err := machines(admin).Get(t.Context(), "p1", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Empty(t, got.GetLabels(), "%s through status", name)
			assert.Empty(t, got.GetFinalizers(), "%s through status", name)
			assert.Empty(t, got.GetOwnerReferences(), "%s through status", name)
		}
	}
	requireDenied(t, machines(agent).Delete(t.Context(), "p1", metav1.DeleteOptions{}), statusOnly)
	_, err := machines(agent).Create(t.Context(), object(t, "Machine", "p1-new", "roles: [Worker]"), metav1.CreateOptions{})
	requireDenied(t, err, statusOnly)
	_, err = agent.Resource(gvr("ledgers")).Namespace(namespace).Create(t.Context(), object(t, "Ledger", "refit", "epoch: 9"), metav1.CreateOptions{})
	requireDenied(t, err, statusOnly)

	foreign := asServiceAccount(t, "default", "refit-machine-p1")
	err = applyStatus(t, foreign, "p1", "refit-agent", "host: {machineID: evil}")
	assert.True(t, apierrors.IsForbidden(err), "a ServiceAccount of the right name in another namespace: %v", err)
}

func TestTheCoordinatorWritesNothingThatTheAgentObserved(t *testing.T) {
	prepareMatrix(t)
	coordinator := asServiceAccount(t, "refit-system", "refit-coordinator")
	for field, value := range coordinatorFields {
		require.NoError(t, applyStatus(t, coordinator, "p1", "refit-coordinator", field+": "+value), field)
	}
	for field, value := range agentFields {
		err := applyStatus(t, coordinator, "p1", "refit-coordinator", field+": "+value)
		requireDenied(t, err, "status."+field+" is written by the agent of the host, not by the coordinator")
	}
	for _, c := range v1alpha1.AgentConditions {
		requireDenied(t, applyStatus(t, coordinator, "p1", "refit-coordinator", conditions(c)), "are written by the agent of the host, not by the coordinator")
	}
	require.NoError(t, applyStatus(t, coordinator, "p1", "refit-coordinator", conditions(v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate)))
	_, err := machines(coordinator).Patch(t.Context(), "p1", "application/merge-patch+json", []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
	require.NoError(t, err, "it writes templates into specs")
}

func TestBothWritersKeepTheirConditionsSideBySide(t *testing.T) {
	prepareMatrix(t)
	agent, coordinator := as(t, "system:node:p1", "system:nodes"), asServiceAccount(t, "refit-system", "refit-coordinator")
	require.NoError(t, applyStatus(t, coordinator, "p1", "refit-coordinator", conditions("Ready", "UpToDate", "Healthy")))
	require.NoError(t, applyStatus(t, agent, "p1", "refit-agent", conditions("Held", "Staged")))
	require.NoError(t, applyStatus(t, coordinator, "p1", "refit-coordinator", conditions("Healthy", "Ready", "Drained")), "order and set change")
	require.NoError(t, applyStatus(t, agent, "p1", "refit-agent", conditions("Staged")))
	got, err := machines(admin).Get(t.Context(), "p1", metav1.GetOptions{})
	require.NoError(t, err)
	list, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
	var types []string
	for _, c := range list {
		types = append(types, c.(map[string]any)["type"].(string))
	}
	assert.ElementsMatch(t, []string{"Ready", "Healthy", "Drained", "Staged"}, types)
}

// narrowRole is what the coordinator grants for one Machine.
const narrowRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: refit-machine-n1, namespace: refit}
rules:
  - {apiGroups: [refit.dev], resources: [machines], resourceNames: [n1], verbs: [get, list, watch]}
  - {apiGroups: [refit.dev], resources: [machines/status], resourceNames: [n1], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: refit-machine-n1, namespace: refit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: refit-machine-n1}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:n1"}]
`

func TestTheKubeletsCredentialReachesOneMachineAndNothingElse(t *testing.T) {
	require.NoError(t, server.Apply(t.Context(), []byte(narrowRole)))
	for _, name := range []string{"n1", "n2"} {
		_, err := create(t, object(t, "Machine", name, "roles: [Worker]"))
		require.NoError(t, err)
	}
	agent := as(t, "system:node:n1", "system:nodes")
	awaitGranted(t, func() error {
		_, err := machines(agent).Get(t.Context(), "n1", metav1.GetOptions{})
		return err
	})
	require.NoError(t, applyStatus(t, agent, "n1", "refit-agent", "host: {machineID: m}"))
	list, err := machines(agent).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=n1"})
	require.NoError(t, err)
	assert.Len(t, list.Items, 1)

	core := func(r string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: r}
	}
	for what, do := range map[string]func() error{
		"list all Machines":      func() error { _, err := machines(agent).List(t.Context(), metav1.ListOptions{}); return err },
		"get another Machine":    func() error { _, err := machines(agent).Get(t.Context(), "n2", metav1.GetOptions{}); return err },
		"write another's status": func() error { return applyStatus(t, agent, "n2", "refit-agent", "host: {machineID: m}") },
		"list all nodes": func() error {
			_, err := agent.Resource(core("nodes")).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"get another node": func() error {
			_, err := agent.Resource(core("nodes")).Get(t.Context(), "n2", metav1.GetOptions{})
			return err
		},
		"list all pods": func() error {
			_, err := agent.Resource(core("pods")).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"list secrets": func() error {
			_, err := agent.Resource(core("secrets")).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"list secrets of a namespace": func() error {
			_, err := agent.Resource(core("secrets")).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"read a secret": func() error {
			_, err := agent.Resource(core("secrets")).Namespace(namespace).Get(t.Context(), "x", metav1.GetOptions{})
			return err
		},
		"read pools": func() error {
			_, err := agent.Resource(gvr("machinedeployments")).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"read the ledger": func() error {
			_, err := agent.Resource(gvr("ledgers")).Namespace(namespace).Get(t.Context(), "refit", metav1.GetOptions{})
			return err
		},
		"write its own spec": func() error {
			_, err := machines(agent).Patch(t.Context(), "n1", "application/merge-patch+json", []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
			return err
		},
	} {
		err := do()
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
}

// A kubelet's credential has rights of its own, which Refit neither gives nor takes:
// its own Node, the pods bound to it, and all Services. This test notes them, so that
// nobody takes them for Refit's.
func TestWhatAKubeletMayReadAnyway(t *testing.T) {
	require.NoError(t, server.Apply(t.Context(), []byte("apiVersion: v1\nkind: Node\nmetadata: {name: n3}")))
	kubelet := as(t, "system:node:n3", "system:nodes")
	v1 := func(r string) dynamic.NamespaceableResourceInterface {
		return kubelet.Resource(schema.GroupVersionResource{Version: "v1", Resource: r})
	}
	_, err := v1("nodes").Get(t.Context(), "n3", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = v1("pods").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=n3"})
	require.NoError(t, err)
	_, err = v1("services").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = v1("pods").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=other"})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

func prepareMatrix(t *testing.T) {
	t.Helper()
	require.NoError(t, server.Apply(t.Context(), []byte(wideRole)))
	for _, name := range []string{"p1", "p2"} {
		_, err := create(t, object(t, "Machine", name, "roles: [Worker]"))
		require.NoError(t, err)
	}
	agent, coordinator := as(t, "system:node:p1", "system:nodes"), asServiceAccount(t, "refit-system", "refit-coordinator")
	awaitGranted(t, func() error { _, err := machines(agent).List(t.Context(), metav1.ListOptions{}); return err })
	awaitGranted(t, func() error { _, err := machines(coordinator).List(t.Context(), metav1.ListOptions{}); return err })
	// A policy is in force a moment after it was created. Until then each try really writes, so each writes something new.
	try := 0
	require.Eventually(t, func() bool {
		try++
		value := fmt.Sprint(try)
		return apierrors.IsForbidden(applyStatus(t, agent, "p2", "refit-agent", "host: {bootID: b"+value+"}")) &&
			apierrors.IsForbidden(applyStatus(t, coordinator, "p2", "refit-coordinator", "observedEpoch: "+value))
	}, 30*time.Second, 50*time.Millisecond)
}

func awaitGranted(t *testing.T, do func() error) {
	t.Helper()
	require.Eventually(t, func() bool { return do() == nil }, 30*time.Second, 50*time.Millisecond)
}

func applyStatus(t *testing.T, c dynamic.Interface, name, manager, status string) error {
	t.Helper()
	o := object(t, "Machine", name, "{}")
	delete(o.Object, "spec")
	o.Object["status"] = decode(t, status)
	_, err := machines(c).ApplyStatus(t.Context(), name, o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

func conditions(types ...string) string {
	var items []string
	for _, c := range types {
		items = append(items, fmt.Sprintf(`{type: %s, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}`, c))
	}
	return "conditions: [" + strings.Join(items, ", ") + "]"
}

func requireDenied(t *testing.T, err error, message string) {
	t.Helper()
	require.Error(t, err, message)
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.Contains(t, err.Error(), message)
}
