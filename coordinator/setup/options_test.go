package setup

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestABadOptionIsRefusedWithWhatToDo(t *testing.T) {
	for args, says := range map[string]string{
		"--namespace=Refit_1":                  `--namespace "Refit_1"`,
		"--leader-election-namespace=":         "name the namespace of the Lease",
		"--lease-duration=1s":                  "must be 5s or more",
		"--workload-kubeconfig=w --namespace=": "needs --namespace",
		"--agent-identity=node":                "is one of Node, ServiceAccount and Both",
	} {
		var o Options
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		o.Bind(fs)
		require.NoError(t, fs.Parse(strings.Fields(args)))
		require.ErrorContains(t, o.Validate(), says)
	}
	var o Options
	o.Bind(flag.NewFlagSet("", flag.ContinueOnError))
	require.NoError(t, o.Validate(), "the defaults are good")
}

func TestEachWorkloadClusterHasALeaderOfItsOwn(t *testing.T) {
	names := map[string]bool{}
	for _, o := range []Options{
		{Namespace: "refit"}, {Namespace: "east", WorkloadKubeconfig: "east.conf"}, {Namespace: "west", WorkloadKubeconfig: "west.conf"},
	} {
		names[o.lease()] = true
	}
	assert.Len(t, names, 3)
}

// In a management cluster a Node of a host's name is another host, whose kubelet must not
// come as that host's agent.
func TestTheKubeletsCertificateCountsOnlyInTheClusterOfItsNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		options        Options
		node, accounts bool
		refused        bool
	}{
		"one cluster":                      {options: Options{}, node: true},
		"one cluster, agents in pods":      {options: Options{AgentIdentity: "ServiceAccount"}, accounts: true},
		"one cluster, from one to another": {options: Options{AgentIdentity: "Both"}, node: true, accounts: true},
		"a management cluster":             {options: Options{WorkloadKubeconfig: "w"}, accounts: true},
		"a management cluster, by mistake": {options: Options{WorkloadKubeconfig: "w", AgentIdentity: "Both"}, node: true, accounts: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.LeaseDuration, tc.options.Namespace = time.Minute, "refit"
			assert.Equal(t, tc.node, tc.options.identity().Node())
			assert.Equal(t, tc.accounts, tc.options.identity().ServiceAccount())
			if tc.refused {
				require.ErrorContains(t, tc.options.Validate(), "other hosts")
				return
			}
			require.NoError(t, tc.options.Validate())
		})
	}
}

func TestAHeartbeatOfANodeBringsNothingAbout(t *testing.T) {
	node := func(edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		edit(n)
		return n
	}
	old := node(func(*corev1.Node) {})
	beat := old.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	beat.ResourceVersion = "2"
	assert.False(t, nodeChanged().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: old, ObjectNew: beat}))
	for name, edit := range map[string]func(*corev1.Node){
		"cordon":  func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"ready":   func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
		"kubelet": func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.37.2" },
	} {
		changed := old.DeepCopy()
		edit(changed)
		assert.True(t, nodeChanged().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: old, ObjectNew: changed}), name)
	}
}
