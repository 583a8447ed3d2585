package manifest

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// KindFacts is the kind of what a host says of itself.
const KindFacts = "Facts"

// Object is one object of a file.
type Object struct {
	// File and Line are where it begins.
	File string
	Line int

	APIVersion, Kind string
	// Meta of the object; facts have none.
	Meta metav1.ObjectMeta
	// Content as it was read.
	Content map[string]any

	doc    document
	prefix string // of the item in a list
}

// Errorf is an error at a field of the object.
func (o *Object) Errorf(path, format string, args ...any) Error {
	full := strings.TrimPrefix(o.prefix+"."+path, ".")
	return Error{File: o.File, Line: lineOf(o.doc.node, full), Field: path, Message: fmt.Sprintf(format, args...)}
}

// Decode fills a typed object.
func (o *Object) Decode(into any) error {
	data, err := json.Marshal(o.Content)
	if err != nil {
		return fmt.Errorf("encoding %s of %s: %w", o.Kind, o.File, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return o.Errorf("", "%s", err)
	}
	return nil
}

// Options of a reading.
type Options struct {
	// Namespace of objects that name none.
	Namespace string
	// Kinds that are wanted, such as Machine and Facts; "Node" is v1.
	Kinds []string
	// Old gives the object that one replaces, for rules about changes; nil: none is known.
	Old func(kind, namespace, name string) map[string]any
	// Types are kinds without a schema, which are judged by their Go types.
	Types map[string]Type
	// Check judges an object of Refit's, as the API server would.
	Check func(kind string, object, old map[string]any) ([]Fault, error)
	// Stdin is read for the file name "-".
	Stdin io.Reader
}

// Type is a kind without a schema.
type Type struct {
	APIVersion string
	// Namespace of objects that name none; "" where the kind has no namespaces.
	Namespace string
	// Nameless objects need no metadata.
	Nameless bool
	// New makes an empty object.
	New func() any
}

// Fault is one thing that is wrong with an object.
type Fault struct{ Field, Message string }

// UnknownField is the message of a Fault.
const UnknownField = "unknown field: there is no such field"

// Read reads files. Errors has everything that is wrong with their content.
func Read(files []string, o Options) ([]Object, error) {
	var all []Object
	var errs Errors
	for _, file := range files {
		name, text, err := content(file, o.Stdin)
		if err != nil {
			return nil, err
		}
		objects, found := readText(name, text, o)
		all, errs = append(all, objects...), append(errs, found...)
	}
	errs = append(errs, twice(all)...)
	return all, errs.orNil()
}

func content(file string, stdin io.Reader) (name, text string, err error) {
	if file == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return "", "", fmt.Errorf("reading the standard input: %w", err)
		}
		return "stdin", string(data), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", Error{File: file, Message: "it cannot be read: " + err.Error()}
	}
	return file, string(data), nil
}

func readText(file, text string, o Options) ([]Object, Errors) {
	docs, errs := documents(file, text)
	var all []Object
	for _, doc := range docs {
		objects, found := objectsOf(doc)
		errs = append(errs, found...)
		for i := range objects {
			if found := objects[i].check(o); len(found) > 0 {
				errs = append(errs, found...)
				continue
			}
			all = append(all, objects[i])
		}
	}
	if len(docs) == 0 && len(errs) == 0 {
		errs = append(errs, Error{File: file, Message: "there is no object in it"})
	}
	return all, errs
}

// objectsOf takes lists apart.
func objectsOf(doc document) ([]Object, Errors) {
	fields, ok := doc.value.(map[string]any)
	if !ok {
		return nil, Errors{{File: doc.file, Line: lineOf(doc.node, ""), Message: fmt.Sprintf("this is a %s, not an object with apiVersion and kind", typeName(doc.value))}}
	}
	items, isList := fields["items"].([]any)
	kind, _ := fields["kind"].(string)
	if !isList || !strings.HasSuffix(kind, "List") {
		return []Object{newObject(doc, "", fields)}, nil
	}
	var objects []Object
	var errs Errors
	for i, item := range items {
		path := fmt.Sprintf("items[%d]", i)
		inner, ok := item.(map[string]any)
		if !ok {
			errs = append(errs, Error{File: doc.file, Line: lineOf(doc.node, path), Field: path, Message: fmt.Sprintf("this is a %s, not an object", typeName(item))})
			continue
		}
		if _, named := inner["kind"]; !named && kind != "List" { // as the API server lists them
			inner["apiVersion"], inner["kind"] = fields["apiVersion"], strings.TrimSuffix(kind, "List")
		}
		objects = append(objects, newObject(doc, path, inner))
	}
	return objects, errs
}

func newObject(doc document, prefix string, fields map[string]any) Object {
	o := Object{File: doc.file, Line: lineOf(doc.node, prefix), Content: fields, doc: doc, prefix: prefix}
	o.APIVersion, _ = fields["apiVersion"].(string)
	o.Kind, _ = fields["kind"].(string)
	return o
}

// check judges the object, by the rules of its kind.
func (o *Object) check(options Options) Errors {
	for _, f := range []string{"apiVersion", "kind"} {
		if text, ok := o.Content[f].(string); !ok || text == "" {
			return Errors{o.Errorf(f, "Required value: it says what the object is, such as apiVersion: %s and kind: Machine", v1alpha1.GroupVersion)}
		}
	}
	if !slices.Contains(options.Kinds, o.Kind) {
		return Errors{o.Errorf("kind", "%s is not read here: give %s", o.Kind, strings.Join(options.Kinds, ", "))}
	}
	want := v1alpha1.GroupVersion.String()
	switch o.Kind {
	case KindFacts:
		want = upgrade.FactsAPIVersion
	case "Node":
		want = "v1"
	}
	typed, isTyped := options.Types[o.Kind]
	if isTyped {
		want = typed.APIVersion
	}
	if o.APIVersion != want {
		return Errors{o.Errorf("apiVersion", "%s of %s is not known to this Refit: it reads %s", o.Kind, o.APIVersion, want)}
	}
	if o.Kind == KindFacts {
		return o.checkFacts()
	}
	if isTyped {
		return o.checkTyped(typed)
	}
	errs := o.checkMeta(options.Namespace, o.Kind != "Node")
	if o.Kind == "Node" {
		return errs
	}
	return append(errs, o.checkSchema(options)...)
}

// checkTyped judges an object of a kind without a schema.
func (o *Object) checkTyped(t Type) Errors {
	var errs Errors
	if _, named := o.Content["metadata"]; named || !t.Nameless {
		errs = o.checkMeta(t.Namespace, t.Namespace != "")
	}
	return append(errs, o.checkType(o.Content, t.New(), "")...)
}

func (o *Object) checkMeta(namespace string, namespaced bool) Errors {
	metadata, ok := o.Content["metadata"].(map[string]any)
	if !ok {
		return Errors{o.Errorf("metadata", "Required value: an object needs metadata.name")}
	}
	errs := o.checkType(metadata, &o.Meta, "metadata")
	if len(errs) > 0 {
		return errs
	}
	if namespaced && o.Meta.Namespace == "" {
		o.Meta.Namespace = namespace
	}
	if o.Meta.Name == "" {
		return Errors{o.Errorf("metadata.name", "Required value: name the host's Node")}
	}
	for _, err := range apivalidation.ValidateObjectMeta(&o.Meta, namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")) {
		errs = append(errs, o.Errorf(err.Field, "%s", err.ErrorBody()))
	}
	return errs
}

func (o *Object) checkSchema(options Options) Errors {
	var old map[string]any
	if options.Old != nil {
		old = options.Old(o.Kind, o.Meta.Namespace, o.Meta.Name)
	}
	if _, reported := o.Content["status"]; old != nil && !reported { // a file without status changes none
		o.Content["status"] = old["status"]
		defer delete(o.Content, "status")
	}
	faults, err := options.Check(o.Kind, runtime.DeepCopyJSON(o.Content), old)
	if err != nil {
		return Errors{o.Errorf("kind", "%s", err)}
	}
	var errs Errors
	for _, fault := range faults {
		errs = append(errs, o.Errorf(o.precise(fault), "%s", fault.Message))
	}
	return errs
}

// precise is the field that a rule is about where its message begins with it: rules
// about several fields are those of what holds them.
func (o *Object) precise(fault Fault) string {
	message := strings.TrimPrefix(fault.Message, "Invalid value: ")
	name, _, _ := strings.Cut(message, " ")
	below := strings.TrimPrefix(fault.Field+"."+strings.TrimSuffix(name, ":"), ".")
	if strings.Contains(name, ".") && there(o.Content, strings.Split(below, ".")) {
		return below
	}
	return fault.Field
}

func there(value any, path []string) bool {
	for _, key := range path {
		fields, _ := value.(map[string]any)
		child, ok := fields[key]
		if !ok {
			return false
		}
		value = child
	}
	return true
}

// twice finds objects that are there twice: which of them was meant is anyone's guess.
func twice(objects []Object) Errors {
	first := map[string]*Object{}
	var errs Errors
	for i := range objects {
		o := &objects[i]
		if o.Kind == KindFacts {
			continue
		}
		key := o.Kind + "/" + o.Meta.Namespace + "/" + o.Meta.Name
		if earlier := first[key]; earlier != nil {
			errs = append(errs, o.Errorf("metadata.name", "%s %s is there twice, first at %s:%d: keep one", o.Kind, o.Meta.Name, earlier.File, earlier.Line))
			continue
		}
		first[key] = o
	}
	return errs
}
