package manifest

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// checkFacts judges facts by their Go type.
func (o *Object) checkFacts() Errors {
	facts := &upgrade.Facts{}
	errs := o.checkType(o.Content, facts, "")
	if len(errs) > 0 {
		return errs
	}
	for i, index := range facts.Packages.Indexes {
		for j, c := range index.Candidates {
			if c.SHA256 != "" && !upgrade.IsDigest(c.SHA256) { // without one the plan says that it is not known
				errs = append(errs, o.Errorf(fmt.Sprintf("packages.indexes[%d].candidates[%d].sha256", i, j), "%q is no SHA-256 sum of 64 hexadecimal digits", c.SHA256))
			}
		}
	}
	return errs
}

// checkType judges content that has no schema by the Go type it is read into, and reads it.
func (o *Object) checkType(content map[string]any, into any, path string) Errors {
	var errs Errors
	check(content, reflect.TypeOf(into).Elem(), path, func(at, format string, args ...any) {
		errs = append(errs, o.Errorf(at, format, args...))
	})
	if len(errs) > 0 {
		return errs
	}
	data, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil { // a time that is none, a number out of range
		errs = append(errs, o.Errorf(path, "%s", err))
	}
	return errs
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	metaTimeType = reflect.TypeFor[metav1.Time]()
	fieldsType   = reflect.TypeFor[metav1.FieldsV1]()
	decoderType  = reflect.TypeFor[stdjson.Unmarshaler]()
)

// checkDecoded has a type that reads itself say what does not fit.
func checkDecoded(value any, t reflect.Type, path string, tell func(path, format string, args ...any)) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		tell(path, "%s", err)
	}
}

// check walks a value along a type, and tells of everything that does not fit.
func check(value any, t reflect.Type, path string, tell func(path, format string, args ...any)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil || t.Kind() == reflect.Interface || t == fieldsType {
		return
	}
	if t == timeType || t == metaTimeType {
		checkTime(value, path, tell)
		return
	}
	if reflect.PointerTo(t).Implements(decoderType) {
		checkDecoded(value, t, path, tell)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		checkStruct(value, t, path, tell)
	case reflect.Map:
		if fields, ok := object(value, path, tell); ok {
			for key, child := range fields {
				check(child, t.Elem(), path+"."+key, tell)
			}
		}
	case reflect.Slice:
		checkList(value, t, path, tell)
	default:
		if !scalar(value, t.Kind()) {
			tell(path, "must be a %s, and is %s", kindName(t.Kind()), shown(value))
		}
	}
}

func checkTime(value any, path string, tell func(path, format string, args ...any)) {
	text, ok := value.(string)
	if _, err := time.Parse(time.RFC3339, text); !ok || err != nil {
		tell(path, "must be a time such as 2026-05-04T10:00:00Z, and is %s", shown(value))
	}
}

func checkList(value any, t reflect.Type, path string, tell func(path, format string, args ...any)) {
	items, ok := value.([]any)
	if !ok {
		tell(path, "must be a list, and is %s", shown(value))
	}
	for i, item := range items {
		check(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i), tell)
	}
}

func checkStruct(value any, t reflect.Type, path string, tell func(path, format string, args ...any)) {
	content, ok := object(value, path, tell)
	if !ok {
		return
	}
	known := Fields(t)
	for key, child := range content {
		at := strings.TrimPrefix(path+"."+key, ".")
		i := slices.IndexFunc(known, func(f Field) bool { return f.Name == key })
		if i < 0 {
			tell(at, UnknownField)
			continue
		}
		check(child, known[i].Type, at, tell)
	}
}

// Field is a field of a type, as it is written.
type Field struct {
	Name string
	Type reflect.Type
}

// Fields are those of a struct in its encoded form.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			fields = append(fields, Fields(f.Type)...)
		default:
			fields = append(fields, Field{name, f.Type})
		}
	}
	return fields
}

func object(value any, path string, tell func(path, format string, args ...any)) (map[string]any, bool) {
	fields, ok := value.(map[string]any)
	if !ok {
		tell(path, "must be an object, and is %s", shown(value))
	}
	return fields, ok
}

func scalar(value any, kind reflect.Kind) bool {
	switch v := value.(type) {
	case string:
		return kind == reflect.String
	case bool:
		return kind == reflect.Bool
	case int64:
		return kind >= reflect.Int && kind <= reflect.Int64 || kind >= reflect.Uint && kind <= reflect.Uint64 && v >= 0 || kind == reflect.Float64
	case float64:
		return kind == reflect.Float64
	}
	return false
}

func kindName(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	}
	return "whole number"
}

func typeName(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case []any:
		return "list"
	}
	return "object"
}

func shown(value any) string {
	switch value.(type) {
	case []any, map[string]any:
		return "a " + typeName(value)
	}
	return fmt.Sprintf("the %s %v", typeName(value), value)
}
