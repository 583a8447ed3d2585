// Package rules judges Machines by the schema of their CRD without the API server's
// code, for programs that have to stay small. It is as strict as crd for all that the
// schema of Machine makes use of; a test has both judge the same objects.
package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/deploy"
	"github.com/refit-dev/refit/pkg/manifest"
)

// schema is the part of an OpenAPI schema that the CRD of Machine makes use of.
type schema struct {
	Type                 string            `json:"type"`
	Format               string            `json:"format"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Required             []string          `json:"required"`
	Enum                 []string          `json:"enum"`
	Pattern              string            `json:"pattern"`
	Minimum              *float64          `json:"minimum"`
	MinLength            *int              `json:"minLength"`
	MaxLength            *int              `json:"maxLength"`
	MinItems             *int              `json:"minItems"`
	MaxItems             *int              `json:"maxItems"`
	MaxProperties        *int              `json:"maxProperties"`
	Free                 bool              `json:"x-kubernetes-preserve-unknown-fields"`
	ListType             string            `json:"x-kubernetes-list-type"`
	ListKeys             []string          `json:"x-kubernetes-list-map-keys"`
	Rules                []rule            `json:"x-kubernetes-validations"`
	Description          string            `json:"description"`
}

type rule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

var machine = sync.OnceValues(readMachine)

func readMachine() (*schema, error) {
	text, err := deploy.Manifests.ReadFile("crds/refit.dev_machines.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the CRD of Machine: %w", err)
	}
	var parsed struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPI json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &parsed); err != nil || len(parsed.Spec.Versions) != 1 {
		return nil, fmt.Errorf("reading the CRD of Machine: it has %d versions: %w", len(parsed.Spec.Versions), err)
	}
	s := &schema{}
	// A keyword that is not known here could not be obeyed.
	if err := yaml.UnmarshalStrict(parsed.Spec.Versions[0].Schema.OpenAPI, s); err != nil {
		return nil, fmt.Errorf("reading the schema of Machine: %w", err)
	}
	return s, nil
}

// Check judges a Machine.
func Check(kind string, object, _ map[string]any) ([]manifest.Fault, error) {
	if kind != "Machine" {
		return nil, fmt.Errorf("%s is not judged here", kind)
	}
	s, err := machine()
	if err != nil {
		return nil, err
	}
	c := &checker{}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(object, key)
	}
	c.check(s, object, "")
	return c.faults, c.err
}

type checker struct {
	faults []manifest.Fault
	err    error
}

func (c *checker) tell(path, format string, args ...any) {
	c.faults = append(c.faults, manifest.Fault{Field: path, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) check(s *schema, value any, path string) {
	before := len(c.faults)
	switch at := value.(type) {
	case map[string]any:
		if c.is(s, "object", path, value) {
			c.fields(s, at, path)
		}
	case []any:
		if c.is(s, "array", path, value) {
			c.items(s, at, path)
		}
	case string:
		if c.is(s, "string", path, value) {
			c.text(s, at, path)
		}
	case bool:
		c.is(s, "boolean", path, value)
	case int64, float64:
		c.number(s, at, path)
	default:
		c.is(s, "", path, value)
	}
	if len(c.faults) == before { // rules count on the right types
		c.rules(s, value, path)
	}
}

func (c *checker) is(s *schema, kind, path string, value any) bool {
	if s.Type != "" && s.Type != kind {
		c.tell(path, "Invalid value: must be of type %s, and is %v", s.Type, value)
	}
	return s.Type == "" || s.Type == kind
}

func (c *checker) fields(s *schema, fields map[string]any, path string) {
	for _, name := range s.Required {
		if _, ok := fields[name]; !ok {
			c.tell(join(path, name), "Required value")
		}
	}
	if s.MaxProperties != nil && len(fields) > *s.MaxProperties {
		c.tell(path, "Too many: %d: must have at most %d items", len(fields), *s.MaxProperties)
	}
	for _, name := range sortedKeys(fields) {
		property, ok := s.Properties[name]
		switch {
		case ok:
			c.check(&property, fields[name], join(path, name))
		case s.AdditionalProperties != nil:
			c.check(s.AdditionalProperties, fields[name], join(path, name))
		case !s.Free:
			c.tell(join(path, name), "%s", manifest.UnknownField)
		}
	}
}

func (c *checker) items(s *schema, items []any, path string) {
	if s.MinItems != nil && len(items) < *s.MinItems {
		c.tell(path, "Invalid value: %d: must have at least %d items", len(items), *s.MinItems)
	}
	if s.MaxItems != nil && len(items) > *s.MaxItems {
		c.tell(path, "Too many: %d: must have at most %d items", len(items), *s.MaxItems)
	}
	seen := map[string]bool{}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.check(s.Items, item, at)
		key, unique := s.key(item)
		if unique && seen[key] {
			c.tell(at, "Duplicate value: %s", key)
		}
		seen[key] = true
	}
}

// key tells the items of a list apart that may not have one twice.
func (s *schema) key(item any) (string, bool) {
	switch s.ListType {
	case "set":
		return fmt.Sprint(item), true
	case "map":
		fields, _ := item.(map[string]any)
		parts := make([]string, 0, len(s.ListKeys))
		for _, key := range s.ListKeys {
			parts = append(parts, fmt.Sprintf("%s=%v", key, fields[key]))
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}

func (c *checker) text(s *schema, text, path string) {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		c.tell(path, "Unsupported value: %q: supported values: %q", text, s.Enum)
	}
	if n := utf8.RuneCountInString(text); s.MaxLength != nil && n > *s.MaxLength {
		c.tell(path, "Too long: may not be more than %d characters", *s.MaxLength)
	} else if s.MinLength != nil && n < *s.MinLength {
		c.tell(path, "Invalid value: %q: must be at least %d characters long", text, *s.MinLength)
	}
	if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
		c.tell(path, "Invalid value: %q: must match %s", text, s.Pattern)
	}
	if s.Format == "date-time" && !dateTime.MatchString(text) {
		c.tell(path, "Invalid value: %q: must be a time such as 2026-05-04T10:00:00Z", text)
	}
}

var dateTime = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$`)

func (c *checker) number(s *schema, value any, path string) {
	n, isFloat := value.(float64)
	if whole, ok := value.(int64); ok {
		n = float64(whole)
	}
	if s.Type != "" && s.Type != "number" && (s.Type != "integer" || isFloat && n != math.Trunc(n)) {
		c.is(s, "number", path, value)
		return
	}
	if s.Minimum != nil && n < *s.Minimum {
		c.tell(path, "Invalid value: %v: must be at least %v", value, *s.Minimum)
	}
	if s.Format == "int32" && math.Abs(n) > math.MaxInt32 {
		c.tell(path, "Invalid value: %v: must fit into 32 bits", value)
	}
}

// matches is the rule that most are: CEL's expressions are Go's.
var matches = regexp.MustCompile(`^self\.matches\('([^']*)'\)$`)

func (c *checker) rules(s *schema, value any, path string) {
	for _, r := range s.Rules {
		ok, err := r.holds(value)
		if err != nil {
			c.err = err
		} else if !ok {
			c.tell(path, "Invalid value: %s", r.Message)
		}
	}
}

func (r rule) holds(value any) (bool, error) {
	if found := matches.FindStringSubmatch(r.Rule); found != nil {
		text, _ := value.(string)
		return regexp.MustCompile(found[1]).MatchString(text), nil
	}
	judge, known := others[r.Rule]
	if !known {
		return false, fmt.Errorf("the rule %q of the CRD is not known", r.Rule)
	}
	return judge(value), nil
}

// others are the rules that are more than one expression, by their text in the CRD.
var others = map[string]func(value any) bool{
	`!has(self.versions) || !has(self.versions.controlPlane) || 'ControlPlane' in self.roles`: func(v any) bool { return versionHasRole(v, "controlPlane", "ControlPlane") },
	`!has(self.versions) || !has(self.versions.etcd) || 'Etcd' in self.roles`:                 func(v any) bool { return versionHasRole(v, "etcd", "Etcd") },
	`!has(self.kubeadm) || !has(self.kubeadm.renewCertificatesBefore) || 'ControlPlane' in self.roles`: func(v any) bool {
		return fieldHasRole(v, "kubeadm", "renewCertificatesBefore", "ControlPlane")
	},
	`self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) > duration('0s') && duration(self) <= duration('4320h')`: func(v any) bool {
		text, _ := v.(string)
		d, err := time.ParseDuration(text)
		return err == nil && plainDuration.MatchString(text) && d > 0 && d <= 4320*time.Hour
	},
	`!has(self.state) || self.state != 'Absent' || !has(self.version)`: func(v any) bool {
		fields, _ := v.(map[string]any)
		return fields["state"] != "Absent" || fields["version"] == nil
	},
	`self.matches('^[A-Za-z][A-Za-z0-9-]*$') && self.lowerAscii() != 'all'`: func(v any) bool {
		text, _ := v.(string)
		return preflightID.MatchString(text) && strings.ToLower(text) != "all"
	},
	// About a change: a file alone changes nothing.
	`!has(oldSelf.status) || !has(oldSelf.status.host) || ((('ControlPlane' in self.spec.roles) == ('ControlPlane' in oldSelf.spec.roles) || ('ControlPlane' in self.spec.roles) == (has(oldSelf.status.versions) && has(oldSelf.status.versions.controlPlane))) && ('Etcd' in self.spec.roles) == ('Etcd' in oldSelf.spec.roles))`: func(any) bool { return true },
}

var preflightID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

var plainDuration = regexp.MustCompile(`^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$`)

func versionHasRole(spec any, version, role string) bool {
	return fieldHasRole(spec, "versions", version, role)
}

func fieldHasRole(spec any, part, field, role string) bool {
	fields, _ := spec.(map[string]any)
	within, _ := fields[part].(map[string]any)
	roles, _ := fields["roles"].([]any)
	return within[field] == nil || slices.Contains(roles, any(role))
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
