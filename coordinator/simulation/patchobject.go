package simulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// patchObject lays a merge patch over an object, as a person would with kubectl patch.
func (e *Engine) patchObject(object string, patch []byte) error {
	kind, key, err := objectKey(object)
	if err != nil {
		return err
	}
	w := e.world
	switch kind {
	case "Machine":
		return e.patchMachine(key.Name, patch)
	case "MachineDeployment":
		return e.patchDeployment(key.Name, patch)
	case "MachineDisruptionBudget":
		next, err := patched(w.budgets[key.Name], patch, false)
		if err != nil {
			return err
		}
		if err := e.valid(kind, next, w.budgets[key.Name]); err != nil {
			return err
		}
		w.putBudget(next)
	case "Node":
		next, err := patched(w.nodes[key.Name], patch, false)
		if err != nil {
			return err
		}
		w.putNode(next)
	case "Pod":
		next, err := patched(w.pods[key], patch, false)
		if err != nil {
			return err
		}
		w.putPod(next)
	case "PodDisruptionBudget":
		return e.patchPodBudget(key, patch)
	}
	return nil
}

func (e *Engine) patchDeployment(name string, patch []byte) error {
	stored := e.world.deployments[name]
	next, err := patched(stored, patch, false)
	if err != nil {
		return err
	}
	if err := e.valid("MachineDeployment", next, stored); err != nil {
		return err
	}
	if !sameJSON(stored.Spec, next.Spec) {
		next.Generation++
	}
	next.Status = stored.Status
	e.world.putDeployment(next)
	return nil
}

func (e *Engine) patchPodBudget(key types.NamespacedName, patch []byte) error {
	stored := e.world.podBudgets[key]
	next, err := patched(stored, patch, false)
	if err != nil {
		return err
	}
	if !sameJSON(stored.Spec, next.Spec) {
		next.Generation++
	}
	return e.world.putPodBudget(next)
}

// patchMachine also remembers what the person has written: no template overrides it.
func (e *Engine) patchMachine(name string, patch []byte) error {
	stored := e.world.machines[name]
	next, err := patched(stored, patch, false)
	if err != nil {
		return err
	}
	if err := e.valid("Machine", next, stored); err != nil {
		return err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&stored.Spec)
	if err != nil {
		return fmt.Errorf("encoding the spec of Machine %s: %w", name, err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next.Spec)
	if err != nil {
		return fmt.Errorf("encoding the spec of Machine %s: %w", name, err)
	}
	e.world.base[name] = rebased(e.world.base[name], before, after)
	if !sameJSON(stored.Spec, next.Spec) {
		next.Generation++
	}
	next.Status = stored.Status
	e.world.putMachine(next)
	return nil
}

// rebased is what people have written, once they have changed a spec from before to after.
func rebased(base, before, after map[string]any) map[string]any {
	out := merged(base, without(after, before))
	return kept(out, after)
}

// kept leaves out what is no longer there.
func kept(tree, in map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range tree {
		other, there := in[key]
		below, isMap := value.(map[string]any)
		under, both := other.(map[string]any)
		switch {
		case !there:
		case isMap && both:
			out[key] = kept(below, under)
		default:
			out[key] = value
		}
	}
	return out
}

// valid has an object judged as the API server would.
func (e *Engine) valid(kind string, next, stored any) error {
	if e.check == nil {
		return nil
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", kind, err)
	}
	old, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", kind, err)
	}
	return e.check(kind, now, old)
}
