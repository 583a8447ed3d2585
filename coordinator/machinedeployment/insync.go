package machinedeployment

import (
	"encoding/json"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// inSync says that an apply of the template would change nothing: the template's manager owns
// in the Machine what the template says and nothing else, with the values that it says. It
// spares the API server a request for each machine when a coordinator starts, and another one
// for each that has just got its template. Whatever it does not understand is not in sync.
func inSync(template map[string]any, m *v1alpha1.Machine) bool {
	owned, known := ownedFields(m)
	if !known {
		return false
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.Spec)
	if err != nil {
		return false
	}
	below, _ := owned["f:spec"].(map[string]any)
	if _, more := owned["f:metadata"]; more || len(owned) > 1 || (below == nil && len(template) > 0) {
		return false
	}
	return sameFields(template, spec, below)
}

// ownedFields are those of the template's manager in the Machine.
func ownedFields(m *v1alpha1.Machine) (fields map[string]any, known bool) {
	for _, f := range m.ManagedFields {
		if f.Manager != FieldManager || f.Subresource != "" || f.Operation != metav1.ManagedFieldsOperationApply || f.FieldsV1 == nil {
			continue
		}
		if known || json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
			return nil, false
		}
		known = true
	}
	return fields, known
}

// sameFields compares a map of the template with that of the spec, field by owned field.
func sameFields(template, spec, owned map[string]any) bool {
	for key := range owned {
		name, isField := strings.CutPrefix(key, "f:")
		if _, wanted := template[name]; key != "." && (!isField || !wanted) {
			return false
		}
	}
	for name, want := range template {
		below, isOwned := owned["f:"+name].(map[string]any)
		have, there := spec[name]
		if !isOwned || !there || !sameValue(want, have, below) {
			return false
		}
	}
	return true
}

// sameValue compares a value that is owned as a whole, a map of fields, or a list by keys.
func sameValue(want, have any, owned map[string]any) bool {
	if len(owned) == 0 {
		return equality.Semantic.DeepEqual(normal(want), normal(have))
	}
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		return ok && sameFields(want, have, owned)
	case []any:
		have, ok := have.([]any)
		return ok && sameItems(want, have, owned)
	}
	return false
}

// sameItems compares a list whose items are owned one by one. Where other managers own items
// of it as well, or the template's items are in another order, an apply tells.
func sameItems(want, have []any, owned map[string]any) bool {
	items := 0
	for key := range owned {
		if strings.HasPrefix(key, "k:") || strings.HasPrefix(key, "v:") {
			items++
		} else if key != "." {
			return false
		}
	}
	return items == len(want) && equality.Semantic.DeepEqual(normal(want), normal(have))
}

// normal is a value as JSON has it, with one kind of number.
func normal(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return v
	}
	return out
}
