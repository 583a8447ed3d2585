// Package agent_test runs the agent against a real API server, under the role it has
// in a cluster. The host is simulated; its state directory and journals are real.
package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const (
	namespace = "refit"
	patience  = 30 * time.Second
)

var (
	machines = schema.GroupVersionResource{Group: "refit.dev", Version: "v1alpha1", Resource: "machines"}
	serial   atomic.Int64
)

// cluster is an API server with one Machine, its host, and the coordinator's pen.
type cluster struct {
	t    *testing.T
	srv  *apiserver.Server
	name string
	host *host
	api  dynamic.ResourceInterface
	// pen is what the coordinator has written last: apply is always whole.
	pen v1alpha1.MachineStatus
}

var shared *apiserver.Server

func TestMain(m *testing.M) {
	if dir := os.Getenv(agentEnv); dir != "" {
		fmt.Fprintln(os.Stderr, "the agent ended:", beAgent(dir))
		os.Exit(1)
	}
	code := m.Run()
	if shared != nil {
		_ = shared.Stop()
	}
	os.Exit(code)
}

// newCluster makes a Machine of its own on the shared server.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if shared == nil {
		shared = apiserver.StartShared(t)
		// The agent's writes must pass the admission policy that keeps it to its own fields.
		policies, err := filepath.Glob("../../../deploy/policy/*.yaml")
		require.NoError(t, err)
		require.NotEmpty(t, policies)
		require.NoError(t, shared.ApplyFiles(t.Context(), policies...))
		require.NoError(t, shared.ApplyFiles(t.Context(), "../../../deploy/policy/agent.yaml"))
	}
	return onServer(t, shared)
}

func onServer(t *testing.T, srv *apiserver.Server) *cluster {
	t.Helper()
	name := fmt.Sprintf("w%d", serial.Add(1))
	client, err := dynamic.NewForConfig(srv.Admin())
	require.NoError(t, err)
	c := &cluster{t: t, srv: srv, name: name, host: newHost(t.TempDir(), name), api: client.Resource(machines).Namespace(namespace)}
	require.NoError(t, srv.Apply(t.Context(), fmt.Appendf(nil, objects, name)))
	return c
}

const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: refit}
---
apiVersion: refit.dev/v1alpha1
kind: Machine
metadata: {name: %[1]s, namespace: refit}
spec: {roles: [Worker], versions: {kubelet: v1.37.2}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: refit-machine-%[1]s, namespace: refit}
rules:
- {apiGroups: [refit.dev], resources: [machines], resourceNames: [%[1]s], verbs: [get, list, watch]}
- {apiGroups: [refit.dev], resources: [machines/status], resourceNames: [%[1]s], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: refit-machine-%[1]s, namespace: refit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: refit-machine-%[1]s}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:%[1]s"}
`

// running is one agent process.
type running struct {
	kill func()
	done chan struct{}
}

// stop kills the agent and waits until nothing of it runs.
func (r *running) stop() {
	r.kill()
	<-r.done
}

// startAgent starts an agent with the kubelet's identity. wrap may put something between it and the API server.
func (c *cluster) startAgent(wrap func(agent.API, context.CancelFunc) agent.API) *running {
	c.t.Helper()
	client, err := watch.NewClient(c.srv.As(c.t, "system:node:"+c.name, "system:nodes"), namespace, c.name)
	require.NoError(c.t, err)
	ctx, kill := context.WithCancel(logr.NewContext(context.Background(), testr.New(c.t)))
	var api agent.API = client
	if wrap != nil {
		api = wrap(client, kill)
	}
	require.NoError(c.t, c.host.state.MakeDirs())
	files, err := agent.FileEvents(ctx, c.host.state.JournalDir())
	require.NoError(c.t, err)
	a := agent.New(agent.Deps{
		API: api, Executor: c.host, Store: store.New(c.host.state.Dir()), Files: files,
		Hold: func() *upgrade.HoldFacts { c.host.mu.Lock(); defer c.host.mu.Unlock(); return c.host.hold },
		PackageLock: func() (*upgrade.LockFacts, error) {
			c.host.mu.Lock()
			defer c.host.mu.Unlock()
			return c.host.lock, nil
		},
		MachineID: c.host.machineID, BootID: c.host.bootID,
		Timing: agent.Timing{Retry: 100 * time.Millisecond, RetryMax: time.Second},
	})
	r := &running{kill: kill, done: make(chan struct{})}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		w := &watch.Watcher{Client: client, Busy: a.Busy, Spread: time.Second}
		w.Run(ctx, a.Events())
	}()
	go func() {
		defer close(r.done)
		_ = a.Run(ctx)
		<-watching
	}()
	c.t.Cleanup(r.stop)
	return r
}

func (c *cluster) machine() *v1alpha1.Machine {
	c.t.Helper()
	obj, err := c.api.Get(context.Background(), c.name, metav1.GetOptions{})
	require.NoError(c.t, err)
	machine := &v1alpha1.Machine{}
	require.NoError(c.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, machine))
	return machine
}

// eventually waits until the Machine is as described, and returns it.
func (c *cluster) eventually(what string, ok func(*v1alpha1.Machine) bool) *v1alpha1.Machine {
	c.t.Helper()
	return c.eventuallyWithin(patience, what, ok)
}

func (c *cluster) eventuallyWithin(limit time.Duration, what string, ok func(*v1alpha1.Machine) bool) *v1alpha1.Machine {
	c.t.Helper()
	var last *v1alpha1.Machine
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = c.machine(); ok(last) {
			return last
		}
	}
	text, _ := json.MarshalIndent(last.Status, "", "  ")
	c.t.Fatalf("the Machine never was: %s\n%s", what, text)
	return nil
}

// never asserts that the Machine stays otherwise for a while.
func (c *cluster) never(what string, d time.Duration, bad func(*v1alpha1.Machine) bool) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if m := c.machine(); bad(m) {
			text, _ := json.MarshalIndent(m.Status, "", "  ")
			c.t.Fatalf("the Machine was: %s\n%s", what, text)
		}
	}
}

// coordinate writes what the coordinator owns.
func (c *cluster) coordinate(change func(*v1alpha1.MachineStatus)) {
	c.t.Helper()
	change(&c.pen)
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.pen)
	require.NoError(c.t, err)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "refit.dev/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": c.name, "namespace": namespace}, "status": status,
	}}
	_, err = c.api.ApplyStatus(context.Background(), c.name, obj, metav1.ApplyOptions{FieldManager: "refit-coordinator", Force: true})
	require.NoError(c.t, err)
}

// assign gives the next hop, and waits for the frozen plan.
func (c *cluster) assign(id string, epoch int64) *v1alpha1.Machine {
	c.t.Helper()
	c.propose(id, epoch)
	return c.eventually("planned for "+id, func(m *v1alpha1.Machine) bool {
		return m.Status.Plan != nil && m.Status.Plan.AssignmentID == id
	})
}

func (c *cluster) propose(id string, epoch int64) {
	c.t.Helper()
	c.coordinate(func(s *v1alpha1.MachineStatus) {
		s.Assignment = &v1alpha1.Assignment{
			ID: id, Generation: c.machine().Generation, Type: v1alpha1.OperationUpgrade, KubeadmRole: v1alpha1.KubeadmOther, Epoch: epoch,
			Target: v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: newVersion}},
			Skew:   &v1alpha1.Skew{MinAPIServer: newVersion, MaxAPIServer: newVersion},
		}
	})
}

// grant permits the frozen plan.
func (c *cluster) grant(id string) {
	c.t.Helper()
	plan := c.machine().Status.Plan
	c.coordinate(func(s *v1alpha1.MachineStatus) {
		s.Grant = &v1alpha1.Grant{ID: id, AssignmentID: plan.AssignmentID, PlanHash: plan.Hash, Epoch: s.Assignment.Epoch}
	})
}

func endedAs(id string, state v1alpha1.OperationState) func(*v1alpha1.Machine) bool {
	return func(m *v1alpha1.Machine) bool {
		return m.Status.LastOperation != nil && m.Status.LastOperation.ID == id && m.Status.LastOperation.State == state
	}
}

func succeeded(id string) func(*v1alpha1.Machine) bool {
	return endedAs(id, v1alpha1.OperationSuccessful)
}

func (c *cluster) annotate(key, value string) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := c.api.Patch(context.Background(), c.name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(c.t, err)
}
