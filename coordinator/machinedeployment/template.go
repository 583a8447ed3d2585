package machinedeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager owns what a template has written into Machines.
const FieldManager = fleet.TemplateManager

// apply writes the template into the Machine by server-side apply without force. A
// field that another manager owns with another value is an override: it is left out
// and returned, and the rest is applied all the same.
func (r *Reconciler) apply(ctx context.Context, template *v1alpha1.MachineTemplateSpec, m *v1alpha1.Machine) ([]board.Override, error) {
	return apply(ctx, r.Client, template, m)
}

// Overrides are the fields of the template that other managers own in the Machine. The API
// server says so, and nothing is written.
func Overrides(ctx context.Context, cl client.Writer, template *v1alpha1.MachineTemplateSpec, m *v1alpha1.Machine) ([]board.Override, error) {
	return apply(ctx, cl, template, m, client.DryRunAll)
}

func apply(ctx context.Context, cl client.Writer, template *v1alpha1.MachineTemplateSpec, m *v1alpha1.Machine, options ...client.ApplyOption) ([]board.Override, error) {
	spec, err := fieldsOf(template)
	if err != nil {
		return nil, err
	}
	var overrides []board.Override
	for {
		err := cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(applyConfiguration(m, spec)), append(options, client.FieldOwner(FieldManager))...)
		conflicts := conflictsOf(err)
		if len(conflicts) == 0 {
			return overrides, err //nolint:wrapcheck // the reasons of the API server are for the user
		}
		for _, c := range conflicts {
			if !remove(spec, c.Field) {
				return nil, fmt.Errorf("writing the template into Machine %s: field %s is owned by %s", m.Name, c.Field, c.Manager)
			}
		}
		overrides = append(overrides, conflicts...)
	}
}

// The uid keeps an apply from creating a Machine that has just been deleted.
func applyConfiguration(m *v1alpha1.Machine, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Machine"))
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetUID(m.UID)
	return u
}

func fieldsOf(template *v1alpha1.MachineTemplateSpec) (map[string]any, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	dropEmpty(fields)
	return fields, nil
}

// dropEmpty leaves out objects that say nothing, which wish for nothing either: where an earlier template said something
// there, the API server would make null of {} (see status.Fields). What a kubelet's configuration says of maps stays.
func dropEmpty(fields map[string]any) {
	for name, value := range fields {
		below, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if name != "configuration" {
			dropEmpty(below)
		}
		if len(below) == 0 {
			delete(fields, name)
		}
	}
}

var conflictManager = regexp.MustCompile(`^conflict with "([^"]*)"`)

// conflictsOf reads the causes of a field-manager conflict; none for any other error.
func conflictsOf(err error) []board.Override {
	var st apierrors.APIStatus
	if err == nil || !apierrors.IsConflict(err) || !errors.As(err, &st) || st.Status().Details == nil {
		return nil
	}
	var out []board.Override
	for _, c := range st.Status().Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := c.Message
		if found := conflictManager.FindStringSubmatch(c.Message); found != nil {
			manager = found[1]
		}
		out = append(out, board.Override{Field: strings.TrimPrefix(c.Field, "."), Manager: manager})
	}
	slices.SortFunc(out, func(a, b board.Override) int { return strings.Compare(a.Field, b.Field) })
	return slices.CompactFunc(out, func(a, b board.Override) bool { return a.Field == b.Field })
}
