package checks

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1", Env: []corev1.EnvVar{{Name: "SECRET", Value: "x"}}}}
	return p
}

// cluster has the pool w with w1 and w2, and a node of nobody's.
func cluster(t *testing.T, pods ...runtime.Object) (*fleet.Fleet, *world) {
	t.Helper()
	b := New().Deployment("w").Machine("w1", "w", v1alpha1.RoleWorker).Machine("w2", "w", v1alpha1.RoleWorker, NotReady).Machine("x1", "", v1alpha1.RoleWorker)
	b.Objects.Machines[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	nodes := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for i := range b.Objects.Nodes {
		nodes.WithObjects(b.Objects.Nodes[i].DeepCopy())
	}
	f := b.Build()
	return f, &world{pool: f.Pools["w"], nodes: nodes.Build(), pods: kubefake.NewClientset(pods...), most: mostPods}
}

func TestAnExpressionSeesTheMachineItsPoolAndTheirPods(t *testing.T) {
	for name, tc := range map[string]struct {
		cel  string
		want fleet.CheckState
		says string
	}{
		"true":                          {`true`, fleet.CheckPassed, ""},
		"false":                         {`1 > 2`, fleet.CheckFailed, "is false"},
		"the machine":                   {`machine.metadata.name == "w1" && machine.spec.roles == ["Worker"]`, fleet.CheckPassed, ""},
		"its node":                      {`node.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`, fleet.CheckPassed, ""},
		"the machines of the pool only": {`machines.map(m, m.metadata.name) == ["w1", "w2"]`, fleet.CheckPassed, ""},
		"their nodes only":              {`nodes.map(n, n.metadata.name) == ["w1", "w2"]`, fleet.CheckPassed, ""},
		"a node that is not ready":      {`nodes.all(n, n.status.conditions.all(c, c.status == "True"))`, fleet.CheckFailed, ""},
		"the pods on them only":         {`pods.map(p, p.metadata.name) == ["a", "b"]`, fleet.CheckPassed, ""},
		"what runs in them":             {`pods.all(p, p.spec.containers[0].image == "app:1")`, fleet.CheckPassed, ""},
		"not what is in their settings": {`pods.exists(p, has(p.spec.containers[0].env))`, fleet.CheckFailed, ""},
		"nor who manages fields":        {`has(machine.metadata.managedFields)`, fleet.CheckFailed, ""},
		"strings":                       {`machine.metadata.name.split("w").size() == 2`, fleet.CheckPassed, ""},
		"optional values":               {`machine.?metadata.?labels["none"].orValue("x") == "x"`, fleet.CheckPassed, ""},
		"a field that is not there":     {`machine.spec.nothing == 1`, fleet.CheckUnknown, "no such key: nothing"},
		"what is no answer":             {`machine.metadata.name`, fleet.CheckUnknown, "must give bool"},
		"what costs too much":           {`machines.map(m, m.metadata).all(a, ` + nested(14) + `)`, fleet.CheckUnknown, "cost limit"},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := cluster(t, pod("a", "w1", corev1.PodRunning), pod("b", "w2", corev1.PodPending), pod("c", "x1", corev1.PodRunning))
			var c Compiler
			compiled := c.compile(tc.cel)
			require.NoError(t, compiled.err)
			state, message := evaluate(t.Context(), compiled, w, f.Find("w1"))
			assert.Equal(t, tc.want, state, message)
			assert.Contains(t, message, tc.says)
		})
	}
}

// nested loops multiply: five strings in each of n of them.
func nested(n int) string {
	loop := "true"
	for i := range n {
		loop = fmt.Sprintf(`["a","b","c","d","e"].all(v%d, %s)`, i, loop)
	}
	return loop
}

func TestANodeThatIsNotThereIsNull(t *testing.T) {
	f, w := cluster(t)
	w.nodes = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	var c Compiler
	state, message := evaluate(t.Context(), c.compile("node == null && nodes.size() == 0"), w, f.Find("w1"))
	assert.Equal(t, fleet.CheckPassed, state, message)
}

func TestAnExpressionIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	f, w := cluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c Compiler
	state, _ := evaluate(ctx, c.compile(nested(8)), w, f.Find("w1"))
	assert.Equal(t, fleet.CheckUnknown, state)
}

func TestMorePodsThanAreLookedAtAreNotKnown(t *testing.T) {
	f, w := cluster(t, pod("a", "w1", corev1.PodRunning), pod("b", "w1", corev1.PodRunning), pod("c", "x1", corev1.PodRunning))
	w.most = 1
	var c Compiler
	state, message := evaluate(t.Context(), c.compile("pods.size() > 0"), w, f.Find("w1"))
	assert.Equal(t, fleet.CheckUnknown, state)
	assert.Contains(t, message, "ask Prometheus")
}

func TestAnExpressionThatCannotBeAskedIsNamedBefore(t *testing.T) {
	for name, tc := range map[string]struct{ cel, says string }{
		"a mistake":            {"nodes.all(", "cannot be compiled"},
		"an unknown name":      {"cluster.ok", "undeclared reference to 'cluster'"},
		"a number":             {"1 + 1", "gives int, and must give bool"},
		"a very long mistake":  {strings.Repeat("(", 300), "cannot be compiled"},
		"an unknown function":  {"nodes.every(n, true)", "cannot be compiled"},
		"a list for a machine": {"machines", "must give bool"},
	} {
		t.Run(name, func(t *testing.T) {
			var c Compiler
			err := c.Invalid([]v1alpha1.Check{{Name: "fine", CEL: "true"}, {Name: "other", Prometheus: &v1alpha1.PrometheusCheck{}}, {Name: "bad", CEL: tc.cel}})
			require.Error(t, err)
			assert.Contains(t, err.Error(), `check "bad": `)
			assert.Contains(t, err.Error(), tc.says)
			assert.Less(t, len(err.Error()), 600)
		})
	}
}
