package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	plane  = v1alpha1.RoleControlPlane
	worker = v1alpha1.RoleWorker
)

// lists are what a fleet is read from.
type lists struct {
	client.Reader
	*Builder
}

func (l lists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch into := list.(type) {
	case *v1alpha1.MachineList:
		into.Items = l.Objects.Machines
	case *v1alpha1.MachineDeploymentList:
		into.Items = l.Objects.Deployments
	case *v1alpha1.MachineDisruptionBudgetList:
		into.Items = l.Objects.Budgets
	case *corev1.NodeList:
		into.Items = l.Objects.Nodes
	}
	return nil
}

// what of a reading others look at.
func told(t *testing.T, f *fleet.Fleet) []string {
	out := []string{fmt.Sprint(f.Lost, f.Skews())}
	for _, m := range f.Machines {
		seen, err := json.Marshal([]any{m.Name, m.Claims, m.Pool.Name, m.Node, f.State(m.Name), m.Slot})
		require.NoError(t, err)
		out = append(out, string(seen))
		if a := m.Status.Assignment; a != nil {
			out = append(out, fmt.Sprint(f.View().Allowed(f.State(m.Name), a.Target)))
		}
	}
	return out
}

func TestAFleetReadWithMemoryIsTheFleetReadWithoutIt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	b := New().Deployment("a").Deployment("b")
	for i := range 8 {
		b.Machine(fmt.Sprintf("m%d", i), []string{"a", "b", ""}[i%3], []v1alpha1.Role{plane, worker}[min(i, 1)])
	}
	b.Objects.Nodes = append(b.Objects.Nodes, corev1.Node{})
	b.Objects.Nodes[8].Name = "stranger"
	version := 0
	stamp := func(o client.Object) {
		version++
		o.SetResourceVersion(fmt.Sprint(version))
	}
	for i := range b.Objects.Machines {
		stamp(&b.Objects.Machines[i])
	}
	for i := range b.Objects.Nodes {
		stamp(&b.Objects.Nodes[i])
	}
	ledger := &v1alpha1.Ledger{}
	var memory fleet.Memory
	for range 400 {
		machines, nodes := b.Objects.Machines, b.Objects.Nodes
		switch random.IntN(8) {
		case 0:
			m := machines[random.IntN(len(machines))].DeepCopy()
			m.Status.Versions.Kubelet = []string{"v1.36.3", "v1.37.1", "v1.39.0", ""}[random.IntN(4)]
			stamp(m)
			replace(machines, *m)
		case 1:
			m := machines[random.IntN(len(machines))].DeepCopy()
			m.Labels = map[string]string{"pool": []string{"a", "b", "c"}[random.IntN(3)]}
			stamp(m)
			replace(machines, *m)
		case 2:
			n := &nodes[random.IntN(len(nodes))]
			n.Status.NodeInfo.KubeletVersion = []string{"v1.36.3", "v1.40.0", ""}[random.IntN(3)]
			stamp(n)
		case 3:
			n := &nodes[random.IntN(len(nodes))]
			n.Spec.Unschedulable = !n.Spec.Unschedulable
			stamp(n)
		case 4:
			at := random.IntN(len(machines))
			m := machines[at]
			stamp(&m)
			b.Objects.Machines = append(append([]v1alpha1.Machine{}, machines[:at]...), machines[at+1:]...)
			if random.IntN(2) == 0 { // it comes back, elsewhere in the list
				b.Objects.Machines = append(b.Objects.Machines, m)
			}
			if len(b.Objects.Machines) < 4 {
				b.Objects.Machines = append(b.Objects.Machines, m)
			}
		case 5:
			at := random.IntN(len(nodes))
			n := nodes[at]
			b.Objects.Nodes = append(append([]corev1.Node{}, nodes[:at]...), nodes[at+1:]...)
			if len(b.Objects.Nodes) < 4 {
				b.Objects.Nodes = append(b.Objects.Nodes, n)
			}
		case 6:
			d := &b.Objects.Deployments[random.IntN(2)]
			d.Spec.Selector.MatchLabels = map[string]string{"pool": []string{"a", "b", "c"}[random.IntN(3)]}
		case 7:
			m := &machines[random.IntN(len(machines))]
			ledger.Spec.Slots = []v1alpha1.Slot{{Machine: m.Name, MachineUID: string(m.UID), GrantID: fmt.Sprint(version)}}
		}
		b.Objects.Ledger = ledger.Spec
		with, err := memory.Load(t.Context(), fleet.Readers{Machines: lists{Builder: b}, Nodes: lists{Builder: b}}, ledger, Now)
		require.NoError(t, err)
		without, err := fleet.Build(b.Objects)
		require.NoError(t, err)
		require.Equal(t, told(t, without), told(t, with))
	}
}

func replace(machines []v1alpha1.Machine, m v1alpha1.Machine) {
	for i := range machines {
		if machines[i].Name == m.Name {
			machines[i] = m
		}
	}
}

func TestASlotGivenOnAReadingIsCounted(t *testing.T) {
	f := New().Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker).Build()
	p := f.Pools["w"]
	assert.Equal(t, 3, p.Serving())
	f.Find("w1").Hold(&v1alpha1.Slot{Machine: "w1", Disruption: v1alpha1.DisruptionDrain})
	assert.Equal(t, 2, p.Serving())
	assert.Equal(t, []*fleet.Machine{f.Find("w1")}, p.Tally().AwayBut(f.Find("w2")))
	assert.Empty(t, p.Tally().AwayBut(f.Find("w1")))
}
