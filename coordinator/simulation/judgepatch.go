package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// patchable are the kinds of objects that a patch may be about.
var patchable = map[string]func() any{
	"Machine":                 func() any { return &v1alpha1.Machine{} },
	"MachineDeployment":       func() any { return &v1alpha1.MachineDeployment{} },
	"MachineDisruptionBudget": func() any { return &v1alpha1.MachineDisruptionBudget{} },
	"Node":                    func() any { return &corev1.Node{} },
	"Pod":                     func() any { return &corev1.Pod{} },
	"PodDisruptionBudget":     func() any { return &policyv1.PodDisruptionBudget{} },
}

// judgePatch says, before anything is played, which field of a patch its object does not
// have, or has with another type: it would be left out without a word.
func judgePatch(ev *Event, field string) error {
	kind, _, err := objectKey(ev.Object)
	if err != nil {
		return &InputError{Field: field, Message: err.Error()}
	}
	var tree map[string]any
	if err := json.Unmarshal(ev.Patch.Raw, &tree); err != nil || tree == nil {
		return &InputError{Field: field, Message: "a patch has to be an object, such as {spec: {paused: true}}"}
	}
	var mistyped *json.UnmarshalTypeError
	switch err := json.Unmarshal(ev.Patch.Raw, patchable[kind]()); {
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return &InputError{Field: field + "." + mistyped.Field, Message: fmt.Sprintf("is a %s, and a %s has a %s there: write one", mistyped.Value, kind, mistyped.Type)}
	case err != nil:
		return &InputError{Field: field, Message: "does not fit a " + kind + ": " + err.Error()}
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, patchable[kind](), true)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if !isStrict {
		return nil // what the types say of a value was said above
	}
	for _, e := range strict.Errors() {
		if path, is := strings.CutPrefix(e.Error(), `unknown field "`); is {
			return &InputError{Field: field + "." + strings.TrimSuffix(path, `"`), Message: fmt.Sprintf("a %s has no such field: write its path as in the object (kubectl explain %s)", kind, strings.ToLower(kind))}
		}
	}
	return nil
}
