package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/cli/forecast"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/usage"
)

// workload runs a pod on the node, of a ReplicaSet unless it is bare.
func (d *desk) workload(name, node string, bare bool) {
	d.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if !bare {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: d.replicaSet(name), Controller: yes()}}
	}
	require.Eventually(d, func() bool {
		_, err := d.kube.CoreV1().Pods("default").Create(d.Context(), p.DeepCopy(), metav1.CreateOptions{})
		return err == nil
	}, patience, interval)
	running := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	_, err := d.kube.CoreV1().Pods("default").Patch(d.Context(), name, types.MergePatchType, []byte(running), metav1.PatchOptions{}, "status")
	require.NoError(d, err)
}

// replicaSet is one that exists: the garbage collector would take the pods of any other.
func (d *desk) replicaSet(name string) types.UID {
	d.Helper()
	labels := map[string]string{"app": name}
	rs, err := d.kube.AppsV1().ReplicaSets("default").Create(d.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(d, err)
	return rs.UID
}

func TestAForecastNeedsNoRefitAndEvictsNothing(t *testing.T) {
	d := newDesk(t, "disruption-controller")
	d.node("w1", "")
	d.node("w2", "")
	d.workload("web", "w1", false)
	d.workload("debug", "w2", true)

	assert.Contains(t, d.ok("forecast", "w1"), "w1    1     1       0     0      -")
	out, errs, code := d.refit("forecast")
	assert.Equal(t, usage.ExitRefused, code)
	assert.Contains(t, errs, "1 of 2 nodes can never be drained as things are: w2 (UnmanagedPods)")
	assert.Contains(t, out, "pod default/debug on w2: has no controller, so nothing would recreate it")
	d.ok("forecast", "--force")

	var list forecast.List
	require.NoError(t, json.Unmarshal([]byte(d.ok("forecast", "node/w1", "-o", "json")), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, drain.OutlookNow, list.Items[0].Outlook)
	assert.True(t, list.Items[0].OnlyNode, "w2 is not ready")

	for name, tc := range map[string]struct {
		args    []string
		message string
	}{
		"unknown node":   {[]string{"forecast", "w9"}, "w9 is not there: name a Node, a Machine as machine/NAME, or a pool as machinedeployment/NAME"},
		"no Machines":    {[]string{"forecast", "machine/w1"}, "machine/w1 is not there"},
		"unknown policy": {[]string{"forecast", "--on-timeout", "Keep"}, `--on-timeout "Keep" is not known`},
		"no time":        {[]string{"forecast", "--timeout=-1s"}, "--timeout is 0 or more"},
		"unknown format": {[]string{"forecast", "-o", "xml"}, `--output "xml" is not known`},
	} {
		t.Run(name, func(t *testing.T) { assert.Contains(t, d.refused(usage.ExitCode, tc.args...), tc.message) })
	}
	pods, err := d.kube.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		assert.Nil(t, p.DeletionTimestamp)
	}
}
