package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
)

// mergePatch lays a JSON merge patch (RFC 7386) over an object.
func mergePatch(before, patch []byte) ([]byte, error) {
	var object, change map[string]any
	if err := json.Unmarshal(before, &object); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, errors.New("a patch has to be an object, such as {spec: {paused: true}}")
	}
	after, err := json.Marshal(mergedPatch(object, change))
	if err != nil {
		return nil, fmt.Errorf("encoding what comes of it: %w", err)
	}
	return after, nil
}

// mergedPatch is a tree with a patch laid over it: a null takes a field off.
func mergedPatch(object, patch map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		out[key] = value
	}
	for key, value := range patch {
		below, isMap := value.(map[string]any)
		under, _ := out[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap:
			out[key] = mergedPatch(under, below)
		default:
			out[key] = value
		}
	}
	return out
}
