package verbs

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Change is one object that a verb changes, and in which word it says so. Of one that is
// already as it should be Before and After are the same.
type Change struct {
	Before, After client.Object
	Done          string
	// Notes are for people: what follows, and what does not.
	Notes []string
	// Exact changes are only right for the spec that was read.
	Exact bool
	// Redo makes After from a newer reading, where another spec or another owner bears on it; nil where only the spec does.
	Redo func(fresh client.Object) (client.Object, error)
}

// Nothing says that the object stays as it is.
func (c Change) Nothing() bool { return c.After == nil }

// Target is the object as it is after the change.
func (c Change) Target() client.Object {
	if c.Nothing() {
		return c.Before
	}
	return c.After
}

func annotate(o client.Object, key, value string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	o.SetAnnotations(all)
}

func removeAnnotation(o client.Object, key string) {
	all := o.GetAnnotations()
	delete(all, key)
	o.SetAnnotations(all)
}

// paused of a pool or a machine, to read and to set.
func paused(o client.Object) *bool {
	switch o := o.(type) {
	case *v1alpha1.MachineDeployment:
		return &o.Spec.Paused
	case *v1alpha1.Machine:
		return &o.Spec.Paused
	}
	return new(bool)
}

func copyOf(o client.Object) client.Object {
	c, _ := o.DeepCopyObject().(client.Object)
	return c
}
