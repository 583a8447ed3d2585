package forecast_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/forecast"
	"github.com/refit-dev/refit/pkg/drain"
)

func cluster() forecast.Cluster {
	c := forecast.Cluster{}
	for _, name := range []string{"w2", "w1", "w3"} {
		c.Nodes = append(c.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})
	}
	for _, name := range []string{"w1", "w2", "etcd-1"} {
		c.Machines = append(c.Machines, v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "workers"}}})
	}
	c.Pools = []v1alpha1.MachineDeployment{
		{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: v1alpha1.MachineDeploymentSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: v1alpha1.MachineDeploymentSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "none"}}}},
	}
	return c
}

func TestNodesMachinesAndPoolsAreFoundByName(t *testing.T) {
	for name, tc := range map[string]struct {
		names, want, without []string
		missing              string
	}{
		"nothing named: every node":     {nil, []string{"w1", "w2", "w3"}, nil, ""},
		"a node":                        {[]string{"w3"}, []string{"w3"}, nil, ""},
		"a node twice":                  {[]string{"w3", "node/w3", "machine/w1"}, []string{"w1", "w3"}, nil, ""},
		"a pool, with one without Node": {[]string{"machinedeployment/workers"}, []string{"w1", "w2"}, []string{"etcd-1"}, ""},
		"an unknown node":               {[]string{"w9"}, nil, nil, "w9 is not there"},
		"a node without a Machine":      {[]string{"machine/w3"}, nil, nil, "machine/w3 is not there"},
		"an unknown pool":               {[]string{"machd/x"}, nil, nil, "machd/x is not there"},
		"a pool without a Machine":      {[]string{"machd/empty"}, nil, nil, "a Machine of machd/empty is not there: correct its selector"},
		"an unknown kind":               {[]string{"pod/x"}, nil, nil, "pod/x is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			targets, without, err := cluster().Select(tc.names)
			if tc.missing != "" {
				require.ErrorAs(t, err, &forecast.NotFound{})
				assert.ErrorContains(t, err, tc.missing)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, target := range targets {
				got = append(got, target.Node.Name)
				assert.Equal(t, target.Node.Name != "w3", target.Machine != nil)
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.without, without)
		})
	}
}

func TestTheMachinesPolicyCountsUnlessAFlagDoes(t *testing.T) {
	c := cluster()
	c.Machines[0].Spec.Drain = &v1alpha1.DrainSpec{UnmanagedPods: "Evict", EmptyDir: "Fail"}
	targets, _, err := c.Select([]string{"w1", "w3"})
	require.NoError(t, err)
	opts := c.Request(targets[0], forecast.Overrides{EmptyDir: "Evict", OnTimeout: "Delete"}).Options
	assert.Equal(t, []drain.Action{drain.ActionEvict, drain.ActionEvict, drain.ActionDelete}, []drain.Action{opts.UnmanagedPods, opts.EmptyDir, opts.OnTimeout})
	assert.Equal(t, "Fail", c.Machines[0].Spec.Drain.EmptyDir, "the Machine that was read is left alone")
	assert.Equal(t, drain.DefaultTimeout, opts.Timeout)
	assert.Equal(t, time.Hour, c.Request(targets[0], forecast.Overrides{Timeout: time.Hour}).Options.Timeout)
	c.Machines[0].Spec.Drain = nil
	opts = c.Request(targets[0], forecast.Overrides{}).Options
	assert.Equal(t, []drain.Action{drain.ActionFail, drain.ActionEvict, drain.ActionFail}, []drain.Action{opts.UnmanagedPods, opts.EmptyDir, opts.OnTimeout}, "as the coordinator drains it")
	opts = c.Request(targets[1], forecast.Overrides{}).Options
	assert.Equal(t, []drain.Action{drain.ActionFail, drain.ActionFail, drain.ActionFail}, []drain.Action{opts.UnmanagedPods, opts.EmptyDir, opts.OnTimeout}, "as it is drained by hand")
	assert.False(t, opts.AwaitVolumes || opts.OnlyNode)
	assert.True(t, c.Request(targets[1], forecast.Overrides{Reboot: true}).Options.AwaitVolumes)
	c.Nodes = c.Nodes[2:]
	assert.True(t, c.Request(targets[1], forecast.Overrides{}).Options.OnlyNode)
}

// sample has one budget over two nodes, one that can never let go, and a bare pod.
func sample(t *testing.T) forecast.List {
	targets, _, err := cluster().Select(nil)
	require.NoError(t, err)
	shared := func(pod string) drain.BudgetForecast {
		return drain.BudgetForecast{Namespace: "shop", Name: "web", Outlook: drain.OutlookNow, Allowed: 1, Pods: []string{pod}}
	}
	return forecast.New(targets, []drain.Forecast{
		{Node: "w1", Outlook: drain.OutlookNow, Message: "pods that leave: 2 at once", Budgets: []drain.BudgetForecast{shared("web-1")}, Pods: []drain.PodForecast{
			{Namespace: "shop", Name: "job", Outlook: drain.OutlookNow}, {Namespace: "shop", Name: "web-1", Outlook: drain.OutlookNow, Ready: true, Budgets: []string{"web"}},
		}, Ignored: []drain.IgnoredPod{{Namespace: "kube-system", Name: "cni", Why: drain.IgnoredDaemonSet}}},
		{Node: "w2", Outlook: drain.OutlookNever, Reason: drain.ReasonUnmanagedPods, Message: "…", Pods: []drain.PodForecast{
			{Namespace: "shop", Name: "web-2", Outlook: drain.OutlookNow, Ready: true, Budgets: []string{"web"}},
			{Namespace: "shop", Name: "mq-0", Outlook: drain.OutlookWait, Reason: drain.ReasonEvictionBlocked, Message: "…", Budgets: []string{"mq"}},
			{Namespace: "shop", Name: "db-0", Outlook: drain.OutlookNever, Reason: drain.ReasonEvictionBlocked, Message: "…", Budgets: []string{"db"}},
			{Namespace: "shop", Name: "debug", Outlook: drain.OutlookNever, Reason: drain.ReasonUnmanagedPods, Message: "has no controller, so nothing would recreate it", Help: "kubectl describe pod -n shop debug"},
		}, Budgets: []drain.BudgetForecast{shared("web-2"), {
			Namespace: "shop", Name: "mq", Outlook: drain.OutlookWait, Pods: []string{"mq-0"}, Help: "kubectl describe poddisruptionbudget -n shop mq",
			Message: "budget mq allows 0 disruptions (2 healthy, 2 needed, 3 expected): it clears when other pods become ready",
			Unready: []drain.UnreadyPod{{Name: "mq-1", Node: "w3", Why: "CrashLoopBackOff"}},
		}, {
			Namespace: "shop", Name: "db", Outlook: drain.OutlookNever, Pods: []string{"db-0"}, Help: "kubectl edit poddisruptionbudget -n shop db",
			Message: "budget db allows 0 disruptions (1 healthy, 1 needed, 1 expected): it can never allow one; add replicas, or let it allow one",
		}}},
		{Node: "w3", Outlook: drain.OutlookNow, Message: "no pod has to leave", Pods: []drain.PodForecast{}},
	})
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "make golden writes it")
	assert.Equal(t, string(want), string(got), "make golden rewrites it; read the diff")
}

func TestOutputsAreAsTheyWere(t *testing.T) {
	l := sample(t)
	assert.Equal(t, []string{"w2 (UnmanagedPods)"}, l.Never())
	for name, wide := range map[string]bool{"table.golden": false, "wide.golden": true} {
		var out bytes.Buffer
		require.NoError(t, forecast.Print(&out, l, wide))
		golden(t, name, out.Bytes())
	}
	text, err := json.MarshalIndent(l, "", "  ")
	require.NoError(t, err)
	golden(t, "json.golden", append(text, '\n'))
	text, err = yaml.Marshal(l)
	require.NoError(t, err)
	golden(t, "yaml.golden", text)
}

func TestTheOnlyNodeOfAMachineIsRefusedAsTheCoordinatorDoes(t *testing.T) {
	c := cluster()
	of := []drain.Forecast{{Node: "w1", Outlook: drain.OutlookNow, OnlyNode: true, Pods: []drain.PodForecast{{Namespace: "shop", Name: "a", Outlook: drain.OutlookNow}}}}
	target := []forecast.Target{{Node: &c.Nodes[1], Machine: &c.Machines[0]}}
	assert.Equal(t, []string{"w1 (NoCapacity)"}, forecast.New(target, of).Never())
	c.Machines[0].Spec.Drain = &v1alpha1.DrainSpec{SingleNode: "InPlace"}
	assert.Empty(t, forecast.New(target, of).Never())
	target[0].Machine = nil
	assert.Empty(t, forecast.New(target, of).Never())
}

func TestPodsThatGoUnreadyTakeNothingOfASharedBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed int32
		unready []string
		says    string
	}{
		"both ready":                          {allowed: 1, says: "budget shop/web allows 1: its pods on w1, w2 go one after another"},
		"one unready":                         {allowed: 1, unready: []string{"a-w2"}},
		"one of three unready":                {allowed: 1, unready: []string{"a-w3"}, says: "budget shop/web allows 1: its pods on w1, w2 go one after another"},
		"all unready, and the budget is open": {unready: []string{"a-w1", "a-w2", "a-w3"}},
	} {
		t.Run(name, func(t *testing.T) {
			targets, _, err := cluster().Select(nil)
			require.NoError(t, err)
			if tc.unready == nil || len(tc.unready) == 1 && tc.unready[0] == "a-w2" {
				targets = targets[:2]
			}
			var forecasts []drain.Forecast
			for _, target := range targets {
				pod := "a-" + target.Node.Name
				forecasts = append(forecasts, drain.Forecast{
					Node: target.Node.Name, Outlook: drain.OutlookNow,
					Pods:    []drain.PodForecast{{Namespace: "shop", Name: pod, Outlook: drain.OutlookNow, Ready: !slices.Contains(tc.unready, pod)}},
					Budgets: []drain.BudgetForecast{{Namespace: "shop", Name: "web", Outlook: drain.OutlookNow, Allowed: tc.allowed, Pods: []string{pod}}},
				})
			}
			var out bytes.Buffer
			require.NoError(t, forecast.Print(&out, forecast.New(targets, forecasts), false))
			if tc.says == "" {
				assert.NotContains(t, out.String(), "Waits:")
				return
			}
			assert.Contains(t, out.String(), "Waits:\n  "+tc.says+"\n")
		})
	}
}

func TestOnlyPodsThatABudgetHoldsAreNamedWithIt(t *testing.T) {
	targets, _, err := cluster().Select([]string{"w1", "w2"})
	require.NoError(t, err)
	of := func(node, pod string, outlook drain.Outlook, message string) drain.Forecast {
		return drain.Forecast{Node: node, Outlook: outlook, Reason: drain.ReasonEvictionBlocked, Pods: []drain.PodForecast{
			{Namespace: "shop", Name: pod, Outlook: outlook, Reason: drain.ReasonEvictionBlocked},
		}, Budgets: []drain.BudgetForecast{{Namespace: "shop", Name: "web", Outlook: outlook, Message: message, Pods: []string{pod}}}}
	}
	forecasts := []drain.Forecast{of("w1", "crashing", drain.OutlookNow, ""), of("w2", "well", drain.OutlookWait, "budget web allows 0 disruptions")}
	var out bytes.Buffer
	require.NoError(t, forecast.Print(&out, forecast.New(targets, forecasts), false))
	assert.Contains(t, out.String(), "budget shop/web allows 0 disruptions (well on w2)")
}

func TestANodeThatIsNotReadySaysWhy(t *testing.T) {
	targets, _, err := cluster().Select([]string{"w1"})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, forecast.Print(&out, forecast.New(targets, []drain.Forecast{{
		Node: "w1", Outlook: drain.OutlookWait, Reason: drain.ReasonPodsTerminating, Message: "node w1 has not been ready since 2030-01-01T00:00:00Z (PLEG is not healthy)",
		Pods: []drain.PodForecast{{Namespace: "shop", Name: "a", Outlook: drain.OutlookNow}},
	}}), false))
	assert.Contains(t, out.String(), "Waits:\n  node w1: node w1 has not been ready since 2030-01-01T00:00:00Z (PLEG is not healthy)")
}

func TestWarningsAreCountedAndToldWhereThereAreAny(t *testing.T) {
	targets, _, err := cluster().Select([]string{"w1", "w2"})
	require.NoError(t, err)
	pod := func(name, warning string) drain.PodForecast {
		return drain.PodForecast{Namespace: "shop", Name: name, Outlook: drain.OutlookNow, Warning: warning}
	}
	forecasts := []drain.Forecast{
		{Node: "w1", Outlook: drain.OutlookNow, Pods: []drain.PodForecast{pod("a", "may take 1h0m0s to end"), pod("b", ""), pod("c", "may come back")}},
		{Node: "w2", Outlook: drain.OutlookNow, Pods: []drain.PodForecast{pod("d", "")}},
	}
	var out bytes.Buffer
	require.NoError(t, forecast.Print(&out, forecast.New(targets, forecasts), true))
	assert.Equal(t, `NODE  PODS  GO-NOW  WAIT  NEVER  REASON  WARNINGS  MACHINE  IGNORED  VOLUMES
w1    3     3       0     0      -       2         w1       0        0
w2    1     1       0     0      -       0         w2       0        0

Warnings:
  pod shop/a on w1: may take 1h0m0s to end
  pod shop/c on w1: may come back
`, out.String())
}
