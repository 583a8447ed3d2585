package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// kube is the nodes' cluster as the controllers see it: nodes, the pods on them, leases. What
// is not below, nobody asks for.
type kube struct {
	kubernetes.Interface

	world *world
}

// CoreV1 implements kubernetes.Interface.
func (k kube) CoreV1() coreclient.CoreV1Interface { return core{world: k.world} }

// CoordinationV1 implements kubernetes.Interface.
func (k kube) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return coordination{world: k.world}
}

type core struct {
	coreclient.CoreV1Interface

	world *world
}

// Nodes implements coreclient.CoreV1Interface.
func (c core) Nodes() coreclient.NodeInterface { return nodes{world: c.world} }

// Pods implements coreclient.CoreV1Interface.
func (c core) Pods(string) coreclient.PodInterface { return pods{world: c.world} }

type nodes struct {
	coreclient.NodeInterface

	world *world
}

// Get implements coreclient.NodeInterface.
func (n nodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	stored := n.world.nodes[name]
	if stored == nil {
		return nil, notFound("nodes", name)
	}
	return stored.DeepCopy(), nil
}

// Patch implements coreclient.NodeInterface. It takes strategic merge patches on condition of
// the resourceVersion in them.
func (n nodes) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Node, error) {
	stored := n.world.nodes[name]
	if stored == nil {
		return nil, notFound("nodes", name)
	}
	var condition struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &condition); err != nil {
		return nil, fmt.Errorf("reading a patch of Node %s: %w", name, err)
	}
	if v := condition.Metadata.ResourceVersion; v != "" && v != stored.ResourceVersion {
		return nil, conflict("nodes", name)
	}
	next, err := patched(stored, data, true)
	if err != nil {
		return nil, fmt.Errorf("patching Node %s: %w", name, err)
	}
	n.world.putNode(next)
	return next.DeepCopy(), nil
}

// patched is an object with a patch laid over it.
func patched[T any](stored *T, patch []byte, strategic bool) (*T, error) {
	before, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	apply := func() ([]byte, error) { return mergePatch(before, patch) }
	if strategic {
		apply = func() ([]byte, error) { return strategicpatch.StrategicMergePatch(before, patch, stored) }
	}
	after, err := apply()
	if err != nil {
		return nil, fmt.Errorf("laying the patch over it: %w", err)
	}
	next := new(T)
	if err := json.Unmarshal(after, next); err != nil {
		return nil, fmt.Errorf("reading what comes of it: %w", err)
	}
	return next, nil
}

func sameJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

type pods struct {
	coreclient.PodInterface

	world *world
}

// List implements coreclient.PodInterface, for the pods of one node, or all.
func (p pods) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	selector, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, fmt.Errorf("reading the field selector: %w", err)
	}
	out, all := &corev1.PodList{}, p.world.allPods
	if node, one := selector.RequiresExactMatch("spec.nodeName"); one {
		all = func() []*corev1.Pod { return p.world.podsOf(node) }
	}
	for _, pod := range all() {
		out.Items = append(out.Items, *pod)
	}
	return out, nil
}

type coordination struct {
	coordinationclient.CoordinationV1Interface

	world *world
}

// Leases implements coordinationclient.CoordinationV1Interface.
func (c coordination) Leases(string) coordinationclient.LeaseInterface {
	return leases{world: c.world}
}

type leases struct {
	coordinationclient.LeaseInterface

	world *world
}

// Get implements coordinationclient.LeaseInterface.
func (l leases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if l.world.nodes[name] == nil {
		return nil, notFound("leases", name)
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: corev1.NamespaceNodeLease, ResourceVersion: strconv.Itoa(l.world.leases[name]),
	}}, nil
}
