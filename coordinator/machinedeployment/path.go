package machinedeployment

import (
	"encoding/json"
	"reflect"
	"strings"
)

// remove deletes the field that the API server names in a conflict, such as
// spec.os.packages[name="openssl"].version, from the fields of spec. It says whether
// the field was there. A map that is left empty goes as well, or the list item with
// nothing but its keys.
func remove(spec map[string]any, field string) bool {
	path, ok := strings.CutPrefix(field, "spec.")
	if !ok {
		return false
	}
	steps := split(path)
	_, removed := removeAt(spec, steps)
	return removed
}

// step is a key of a map, or a selector of list items: key values in JSON.
type step struct {
	key      string
	selector map[string]any
}

// split takes a path apart at dots and brackets that are not inside quotes.
func split(path string) []step {
	var steps []step
	for path != "" {
		if path[0] == '[' {
			end := closing(path)
			steps = append(steps, step{selector: selectorOf(path[1:end])})
			path = strings.TrimPrefix(path[min(end+1, len(path)):], ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		steps = append(steps, step{key: path[:end]})
		path = strings.TrimPrefix(path[end:], ".")
	}
	return steps
}

func closing(path string) int {
	quoted := false
	for i := range len(path) {
		switch {
		case path[i] == '"' && path[i-1] != '\\':
			quoted = !quoted
		case path[i] == ']' && !quoted:
			return i
		}
	}
	return len(path)
}

// selectorOf reads name="openssl",effect="NoExecute", or ="CreateJob" for an item of a set.
func selectorOf(text string) map[string]any {
	out := map[string]any{}
	for text != "" {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			return out
		}
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value any
		if decoder.Decode(&value) != nil {
			return out
		}
		out[key] = value
		text = strings.TrimPrefix(rest[decoder.InputOffset():], ",")
	}
	return out
}

func removeAt(from any, steps []step) (left any, removed bool) {
	switch at := from.(type) {
	case map[string]any:
		return removeFromMap(at, steps)
	case []any:
		return removeFromList(at, steps)
	}
	return from, false
}

// The API server writes keys with dots in them (labels, eviction signals) unquoted, so
// a key may be spread over several steps: the shortest that is there is taken.
func removeFromMap(m map[string]any, steps []step) (any, bool) {
	key := ""
	for i := range steps {
		if steps[i].selector != nil {
			break
		}
		key = strings.TrimPrefix(key+"."+steps[i].key, ".")
		child, there := m[key]
		if !there {
			continue
		}
		if i == len(steps)-1 {
			delete(m, key)
			return m, true
		}
		left, removed := removeAt(child, steps[i+1:])
		if isEmpty(left) {
			delete(m, key)
		} else {
			m[key] = left
		}
		return m, removed
	}
	return m, false
}

func removeFromList(list []any, steps []step) (any, bool) {
	var kept []any
	removed := false
	for _, item := range list {
		if !matches(item, steps[0].selector) {
			kept = append(kept, item)
			continue
		}
		if len(steps) == 1 {
			removed = true
			continue
		}
		left, gone := removeAt(item, steps[1:])
		removed = removed || gone
		if fields, ok := left.(map[string]any); !ok || len(fields) > len(steps[0].selector) {
			kept = append(kept, left)
		}
	}
	return kept, removed
}

func matches(item any, selector map[string]any) bool {
	if len(selector) == 0 {
		return false // it could not be read
	}
	fields, isMap := item.(map[string]any)
	for key, want := range selector {
		switch {
		case key == "" && !reflect.DeepEqual(item, want): // a list or a map cannot be compared otherwise
			return false
		case key != "" && (!isMap || !reflect.DeepEqual(fields[key], want)):
			return false
		}
	}
	return true
}

func isEmpty(v any) bool {
	switch at := v.(type) {
	case map[string]any:
		return len(at) == 0
	case []any:
		return len(at) == 0
	}
	return v == nil
}
