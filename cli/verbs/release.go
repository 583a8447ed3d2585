package verbs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
	"github.com/refit-dev/refit/pkg/usage"
)

// Release gives overridden fields of a machine back to its pool's template, all of them
// where none is named. No value changes by that: the other managers lose their claim to
// these very fields, and the coordinator writes what the template has.
func (n *Namespace) Release(ctx context.Context, cl client.Client, machine *v1alpha1.Machine, fields []string) (Change, error) {
	m := n.Fleet.Find(machine.Name)
	if m.Pool.Deployment == nil {
		return Change{}, Refused{fmt.Sprintf("machine %s follows no pool, so no field of it is overridden", m.Name)}
	}
	template := &m.Pool.Deployment.Spec.Template.Spec
	overrides, err := machinedeployment.Overrides(ctx, cl, template, m.Machine)
	if err != nil {
		return Change{}, fmt.Errorf("asking which fields of Machine %s are overridden: %w", m.Name, err)
	}
	chosen, err := choose(m, overrides, fields)
	if err != nil {
		return Change{}, err
	}
	c := Change{Before: m.Machine, Done: "not released: no field of it is overridden"}
	if len(chosen) == 0 {
		return c, nil
	}
	c.Done, c.Exact = "released", true
	c.Redo = func(fresh client.Object) (client.Object, error) { return disowned(fresh, chosen) }
	for _, o := range chosen {
		c.Notes = append(c.Notes, fmt.Sprintf("%s goes back from %s to the template of pool %s", o.Field, o.Manager, m.Pool.Name))
	}
	c.Notes = append(c.Notes, "whoever still applies it from elsewhere will claim it again: take it out there as well")
	c.After, err = c.Redo(m.Machine)
	return c, err
}

func choose(m *fleet.Machine, overrides []board.Override, fields []string) ([]board.Override, error) {
	if len(fields) == 0 {
		return overrides, nil
	}
	var out []board.Override
	for _, field := range fields {
		field = strings.TrimPrefix(field, ".")
		i := slices.IndexFunc(overrides, func(o board.Override) bool { return o.Field == field || o.Field == "spec."+field })
		if i < 0 {
			var there []string
			for _, o := range overrides {
				there = append(there, o.Field)
			}
			return nil, usage.Errorf("%s of machine %s is not overridden: these fields are: %s", field, m.Name, listed(there))
		}
		out = append(out, overrides[i])
	}
	return out, nil
}

// disowned is the object with all claims of others than the template to these fields gone.
func disowned(o client.Object, fields []board.Override) (client.Object, error) {
	after := copyOf(o)
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range after.GetManagedFields() {
		if entry.Subresource == "" && entry.Manager != fleet.TemplateManager {
			for _, f := range fields {
				if _, err := disown(&entry, f.Field); err != nil {
					return nil, err
				}
			}
		}
		if entry.FieldsV1 == nil || string(entry.FieldsV1.GetRawBytes()) != "{}" {
			entries = append(entries, entry)
		}
	}
	after.SetManagedFields(entries)
	return after, nil
}
