package simulate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/simulation"
	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/crd"
)

// Kinds that a scenario may have.
var Kinds = []string{simulation.Kind, "Machine", "MachineDeployment", "MachineDisruptionBudget", "Node", "Pod", "PodDisruptionBudget"}

// types are the kinds that no CRD of ours describes.
var types = map[string]manifest.Type{
	simulation.Kind:       {APIVersion: v1alpha1.GroupVersion.String(), Nameless: true, New: func() any { return &simulation.Simulation{} }},
	"Node":                {APIVersion: "v1", New: func() any { return &corev1.Node{} }},
	"Pod":                 {APIVersion: "v1", Namespace: metav1.NamespaceDefault, New: func() any { return &corev1.Pod{} }},
	"PodDisruptionBudget": {APIVersion: "policy/v1", Namespace: metav1.NamespaceDefault, New: func() any { return &policyv1.PodDisruptionBudget{} }},
}

// Read reads a scenario as strictly as the API server takes its objects.
func Read(files []string, namespace string, stdin io.Reader) (simulation.Scenario, error) {
	s := simulation.Scenario{Namespace: namespace, Check: check}
	objects, err := manifest.Read(files, manifest.Options{Namespace: namespace, Kinds: Kinds, Types: types, Check: crd.Check, Stdin: stdin})
	if err != nil {
		return s, err
	}
	r := &reader{scenario: &s, objects: map[string]*manifest.Object{}}
	s.Where = r.where
	for i := range objects {
		if err := r.add(&objects[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

type reader struct {
	scenario   *simulation.Scenario
	simulation *manifest.Object
	first      *manifest.Object // of those that have the namespace
	objects    map[string]*manifest.Object
}

func (r *reader) add(o *manifest.Object) error {
	s := r.scenario
	switch o.Kind {
	case simulation.Kind:
		if r.simulation != nil {
			return o.Errorf("kind", "there is a %s at %s:%d already: keep one", o.Kind, r.simulation.File, r.simulation.Line)
		}
		r.simulation = o
		var of simulation.Simulation
		err := o.Decode(&of)
		s.Spec = of.Spec
		return err //nolint:wrapcheck // it says where
	case "Machine":
		return take(r, o, &s.Machines, true)
	case "MachineDeployment":
		return take(r, o, &s.Deployments, true)
	case "MachineDisruptionBudget":
		return take(r, o, &s.Budgets, true)
	case "Node":
		return take(r, o, &s.Nodes, false)
	case "Pod":
		return take(r, o, &s.Pods, false)
	case "PodDisruptionBudget":
		return take(r, o, &s.PodBudgets, false)
	}
	return o.Errorf("kind", "%s is not read here", o.Kind)
}

// where is the file and line of a field, or of what it would be in where it is not written.
func (r *reader) where(object, field string) string {
	o := r.simulation
	if object != "" {
		o = r.objects[object]
	}
	if o == nil {
		return ""
	}
	at := o.Errorf(field, "")
	return fmt.Sprintf("%s:%d", at.File, at.Line)
}

// object is a pointer to a typed object.
type object[T any] interface {
	*T
	metav1.Object
}

func take[T any, P object[T]](r *reader, o *manifest.Object, list *[]T, ours bool) error {
	var of T
	if err := o.Decode(&of); err != nil {
		return err
	}
	P(&of).SetNamespace(o.Meta.Namespace)
	name := o.Meta.Name
	if o.Kind == "Pod" || o.Kind == "PodDisruptionBudget" {
		name = o.Meta.Namespace + "/" + name
	}
	r.objects[o.Kind+"/"+name] = o
	if ours {
		if r.first == nil {
			r.first, r.scenario.Namespace = o, o.Meta.Namespace
		}
		if o.Meta.Namespace != r.first.Meta.Namespace {
			return o.Errorf("metadata.namespace", "it is %s, and %s %s is in %s: a simulation is of one namespace", o.Meta.Namespace, r.first.Kind, r.first.Meta.Name, r.first.Meta.Namespace)
		}
	}
	*list = append(*list, of)
	return nil
}

// check judges what an event has made of an object.
func check(kind string, now, old map[string]any) error {
	faults, err := crd.Check(kind, clean(now), clean(old))
	if err != nil {
		return fmt.Errorf("judging the %s: %w", kind, err)
	}
	lines := make([]string, 0, len(faults))
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("patch: %s: %s", f.Field, f.Message))
	}
	slices.Sort(lines)
	if len(lines) > 0 {
		return errors.New(strings.Join(lines, "; "))
	}
	return nil
}

// clean leaves out what a file would not have.
func clean(o map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range o {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	metadata, _ := o["metadata"].(map[string]any)
	out["metadata"] = map[string]any{"name": metadata["name"]}
	return out
}

// Invalid says whether an error is about what a scenario says.
func Invalid(err error) bool {
	var input *simulation.InputError
	return manifest.Invalid(err) || errors.As(err, &input)
}
