package verbs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// disown takes the ownership of a field from one managed-fields entry, and says whether it
// had it. The field is written as conflicts of server-side apply have it: spec.versions.kubelet,
// spec.os.packages[name="openssl"].version.
func disown(entry *metav1.ManagedFieldsEntry, field string) (bool, error) {
	if entry.FieldsV1 == nil {
		return false, nil
	}
	var set map[string]any
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
		return false, fmt.Errorf("reading the fields of manager %s: %w", entry.Manager, err)
	}
	if !take(set, "", "."+field) {
		return false, nil
	}
	text, err := json.Marshal(set)
	if err != nil {
		return false, fmt.Errorf("encoding the fields of manager %s: %w", entry.Manager, err)
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(text))
	return true, nil
}

// take removes one path from a set of fields. A parent that is left empty goes too: empty
// it would mean that the parent itself is owned.
func take(set map[string]any, path, field string) bool {
	for key, value := range set {
		children, ok := value.(map[string]any)
		if key == "." || !ok {
			continue
		}
		at := path + element(key)
		switch _, itself := children["."]; {
		case at == field && (len(children) == 0 || itself):
			delete(children, ".")
		case len(at) < len(field) && strings.HasPrefix(field, at) && take(children, at, field):
		default:
			continue
		}
		if len(children) == 0 {
			delete(set, key)
		}
		return true
	}
	return false
}

// element is one step of a path as server-side apply prints it.
func element(key string) string {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "f":
		return "." + rest
	case "i":
		return "[" + rest + "]"
	case "v":
		return "[=" + rest + "]"
	case "k":
		var keys map[string]json.RawMessage
		if json.Unmarshal([]byte(rest), &keys) != nil {
			return "[" + rest + "]"
		}
		parts := make([]string, 0, len(keys))
		for name, value := range keys {
			parts = append(parts, name+"="+string(value))
		}
		slices.Sort(parts)
		return "[" + strings.Join(parts, ",") + "]"
	}
	return "." + key
}
