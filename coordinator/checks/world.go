package checks

import (
	"context"
	"fmt"
	"sync"

	"github.com/refit-dev/refit/coordinator/fleet"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostPods of a pool that an expression is given.
	mostPods = 10_000
	podPage  = 500
)

// world is what expressions see of one pool, each part read at most once and only where an
// expression uses it.
type world struct {
	pool  *fleet.Pool
	nodes client.Reader
	pods  kubernetes.Interface
	most  int // pods that it reads

	mu   sync.Mutex
	read map[string]any
}

// variables are those that the expression uses.
func (w *world) variables(ctx context.Context, c compiled, m *fleet.Machine) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	vars := map[string]any{}
	for _, name := range c.uses {
		var err error
		switch name {
		case "machine":
			vars[name], err = asJSON(m.Machine)
		case "node":
			vars[name], err = w.node(ctx, m.Name)
		default:
			vars[name], err = w.once(ctx, name)
		}
		if err != nil {
			return nil, err
		}
	}
	return vars, nil
}

func (w *world) once(ctx context.Context, name string) (any, error) {
	if have, ok := w.read[name]; ok {
		return have, nil
	}
	get := map[string]func(context.Context) (any, error){"machines": w.machines, "nodes": w.nodesOf, "pods": w.podsOf}[name]
	out, err := get(ctx)
	if err != nil {
		return nil, err
	}
	if w.read == nil {
		w.read = map[string]any{}
	}
	w.read[name] = out
	return out, nil
}

func (w *world) machines(context.Context) (any, error) {
	out := make([]any, 0, len(w.pool.Machines))
	for _, m := range w.pool.Machines {
		object, err := asJSON(m.Machine)
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// node is nil where the machine has none.
func (w *world) node(ctx context.Context, name string) (any, error) {
	n := &corev1.Node{}
	err := w.nodes.Get(ctx, client.ObjectKey{Name: name}, n)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Node %s: %w", name, err)
	}
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // null is what an expression sees of a node that is not there
	}
	return asJSON(n)
}

func (w *world) nodesOf(ctx context.Context) (any, error) {
	list := &corev1.NodeList{}
	if err := w.nodes.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // it is only read
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	names, out := w.names(), []any{}
	for i := range list.Items {
		if !names[list.Items[i].Name] {
			continue
		}
		object, err := asJSON(&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

func (w *world) names() map[string]bool {
	out := map[string]bool{}
	for _, m := range w.pool.Machines {
		out[m.Name] = true
	}
	return out
}

// podsOf are the pods on the nodes of the pool.
func (w *world) podsOf(ctx context.Context) (any, error) {
	names, out, next := w.names(), []any{}, ""
	for {
		page, err := w.pods.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: podPage, Continue: next})
		if err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		for i := range page.Items {
			if !names[page.Items[i].Spec.NodeName] {
				continue
			}
			object, err := asJSON(essential(&page.Items[i]))
			if err != nil {
				return nil, err
			}
			if out = append(out, object); len(out) > w.most {
				return nil, fmt.Errorf("the nodes of the pool have more than %d pods, which is more than an expression is given: ask Prometheus", w.most)
			}
		}
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}

// essential leaves out of a pod what makes it large: thousands of them are in memory at once.
func essential(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: p.ObjectMeta, Status: p.Status, Spec: corev1.PodSpec{
		NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork, Priority: p.Spec.Priority,
		PriorityClassName: p.Spec.PriorityClassName, ServiceAccountName: p.Spec.ServiceAccountName,
	}}
	for _, c := range p.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return out
}

// asJSON is the object as kubectl shows it, without who manages which field.
func asJSON(o client.Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.GetName(), err)
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	return out, nil
}
