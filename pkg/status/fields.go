package status

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Fields is the JSON form of a status, for server-side apply. A struct that is there and says nothing keeps one empty
// text: of an object whose last owned field goes, the API server makes null instead of {}, which the schema refuses
// (sigs.k8s.io/structured-merge-diff, RemoveItems). Reading it back gives the same status.
func Fields(s any) (map[string]any, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	keepPresent(reflect.Indirect(reflect.ValueOf(s)), fields)
	return fields, nil
}

func keepPresent(v reflect.Value, fields map[string]any) {
	for i := range v.NumField() {
		below, ok := fields[jsonName(v.Type().Field(i))].(map[string]any)
		field := reflect.Indirect(v.Field(i))
		if !ok || field.Kind() != reflect.Struct {
			continue
		}
		keepPresent(field, below)
		if len(below) == 0 {
			say(field.Type(), below)
		}
	}
}

// say gives the first text among a struct's fields its zero value.
func say(t reflect.Type, fields map[string]any) {
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); name != "" && t.Field(i).Type.Kind() == reflect.String {
			fields[name] = ""
			return
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
