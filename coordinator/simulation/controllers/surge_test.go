package controllers

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// threeAndOne is a pool of which three machines serve and w4 stands by; none may be
// unavailable, and one standby may take over.
func threeAndOne(t *testing.T, f *fault) *cluster {
	c := newCluster(t, f)
	cp := c.host("cp1", "control-plane", v1alpha1.RoleControlPlane)
	cp.kubelet, cp.api = after, after
	cp.postNode()
	for _, name := range []string{"w1", "w2", "w3", "w4"} {
		c.host(name, "workers", v1alpha1.RoleWorker)
	}
	c.standBy("w4")
	c.pool("control-plane", v1alpha1.Versions{Kubelet: after, ControlPlane: after})
	c.pool("workers", v1alpha1.Versions{Kubelet: after})
	c.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Replicas = ptr(int32(3))
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{
			MaxUnavailable: ptr(intstr.FromInt32(0)), MaxSurge: ptr(intstr.FromInt32(1)),
		}}
	})
	return c
}

func ptr[T any](v T) *T { return &v }

func (c *cluster) standBy(name string) {
	n := c.node(name)
	n.Spec.Unschedulable = true
	n.Annotations = map[string]string{v1alpha1.AnnotationCordonedBy: v1alpha1.CordonStandby}
	_, err := c.kube.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) edit(pool string, edit func(*v1alpha1.MachineDeployment)) {
	d := &v1alpha1.MachineDeployment{}
	require.NoError(c.t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: pool}, d))
	edit(d)
	require.NoError(c.t, c.api.Update(context.Background(), d))
}

// serving are the workers that pods may run on and come to.
func (c *cluster) serving() []string {
	var out []string
	for _, h := range c.hosts {
		n := c.node(h.name)
		if h.api == "" && !n.Spec.Unschedulable && n.Status.Conditions[0].Status == corev1.ConditionTrue && h.working == 0 {
			out = append(out, h.name)
		}
	}
	return out
}

func (c *cluster) standbys() []string {
	var out []string
	for _, h := range c.hosts {
		if c.node(h.name).Annotations[v1alpha1.AnnotationCordonedBy] == v1alpha1.CordonStandby {
			out = append(out, h.name)
		}
	}
	return out
}

// neverFewer asserts at each single write of the coordinator that so many machines serve.
func (c *cluster) neverFewer(than int) {
	c.fault.looks = func() {
		serving := c.serving()
		assert.GreaterOrEqual(c.t, len(serving), than, "only %v serve after write %d", serving, c.fault.writes)
	}
}

func (c *cluster) allDone() {
	c.t.Helper()
	for _, h := range c.hosts {
		assert.Equal(c.t, after, h.kubelet, h.name)
		if h.api == "" {
			assert.Len(c.t, h.runs, 1, "%s did its work once", h.name)
		}
		assert.Empty(c.t, c.node(h.name).Spec.Taints, h.name)
	}
	assert.Empty(c.t, c.ledger().Slots)
	assert.Len(c.t, c.serving(), 3)
	assert.Len(c.t, c.standbys(), 1)
}

func TestASurgeKeepsAllMachinesServingAndDrainsEachOnce(t *testing.T) {
	c := threeAndOne(t, &fault{})
	c.neverFewer(3)
	golden(t, "surge", c.run())
	c.allDone()
	assert.NotEqual(t, []string{"w4"}, c.standbys(), "nobody is drained for the old one to stand by again")
}

func TestAnOperationThatFailsOnTheStandbyLeavesServingMachinesAlone(t *testing.T) {
	c := threeAndOne(t, &fault{})
	c.hosts[4].fails = true
	c.neverFewer(3)
	golden(t, "surge-standby-fails", c.run())
	assert.Equal(t, []string{"w1", "w2", "w3"}, c.serving())
	assert.Equal(t, []string{"w4"}, c.standbys())
	for _, h := range c.hosts[1:4] {
		assert.Empty(t, h.runs, h.name)
	}
}

func TestASurgeSurvivesTheDeathOfTheCoordinatorAtAnyWrite(t *testing.T) {
	counted := &fault{}
	threeAndOne(t, counted).run()
	require.Greater(t, counted.writes, 30)
	stride := 9
	if os.Getenv("REFIT_EXHAUSTIVE") != "" {
		stride = 1
	}
	for i, late := range []bool{false, true} {
		for at := 1 + i*(stride/2); at <= counted.writes; at += stride {
			t.Run(fmt.Sprintf("write %d late %t", at, late), func(t *testing.T) {
				c := threeAndOne(t, &fault{at: at, late: late})
				c.neverFewer(3)
				c.run()
				require.Equal(t, 1, c.restarts)
				c.allDone()
			})
		}
	}
}

// TestReplicasSayHowManyServe follows a pool through a smaller and a larger number.
func TestReplicasSayHowManyServe(t *testing.T) {
	c := threeAndOne(t, &fault{})
	c.neverFewer(3)
	c.run()
	replicas := func(n int32) {
		c.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = &n })
	}
	replicas(4)
	c.run()
	assert.Len(t, c.serving(), 4)
	assert.Empty(t, c.standbys())

	m := &v1alpha1.Machine{}
	require.NoError(t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "w2"}, m))
	m.Annotations = map[string]string{v1alpha1.AnnotationStandbyNext: ""}
	require.NoError(t, c.api.Update(context.Background(), m))
	c.neverFewer(2)
	replicas(2)
	transcript := ""
	for range 12 {
		c.round()
		assert.LessOrEqual(t, len(c.ledger().Slots), 2)
		transcript += c.line("w2") + "; "
	}
	assert.Contains(t, transcript, "w2 Ready v1.37.2 slot=Reserved cordoned", "it is emptied by a slot")
	assert.Len(t, c.serving(), 2)
	assert.Len(t, c.standbys(), 2)
	assert.Contains(t, c.standbys(), "w2", "the one that was named")
	for _, h := range c.hosts[1:] {
		assert.Len(t, h.runs, 1, "%s: nothing is done to its host", h.name)
	}
	assert.Empty(t, c.ledger().Slots)

	w1 := c.node(c.standbys()[0])
	w1.Spec.Unschedulable = false // a person puts it to work
	_, err := c.kube.CoreV1().Nodes().Update(context.Background(), w1, metav1.UpdateOptions{})
	require.NoError(t, err)
	for range 10 {
		c.round()
	}
	assert.Len(t, c.serving(), 3, "and it is left so, and nobody is drained instead")
	assert.False(t, c.node(w1.Name).Spec.Unschedulable)
}
