package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// TemplateManager owns what a template has written into Machines.
const TemplateManager = "refit-machinedeployment"

// Reasons of what is found when a template is applied, or a pool is asked for.
const (
	FindingOverridden    = "Overridden"
	FindingOwnersUnknown = "FieldOwnersUnknown"
	FindingPoolPaused    = "Paused"
	FindingNoMachine     = "NoMachine"
	ReasonConflict       = "Conflict"
	ReasonInvalid        = "TemplateInvalid"
)

// claims are the deployments that select a machine. An empty selector selects nothing.
func (f *Fleet) claims(m *machine) ([]*v1alpha1.MachineDeployment, error) {
	var out []*v1alpha1.MachineDeployment
	for _, d := range f.pools {
		s := d.Spec.Selector
		if d.Namespace != m.Namespace || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&s)
		if err != nil {
			return nil, fmt.Errorf("reading the selector of MachineDeployment %s: %w", d.Name, err)
		}
		if selector.Matches(labels.Set(m.Labels)) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.MachineDeployment) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// template writes a pool's template into a Machine's spec as the coordinator does, by
// server-side apply without force: a field that someone else has set to another value
// stays, and is found.
func template(m *machine, d *v1alpha1.MachineDeployment) ([]upgrade.Finding, error) {
	s, err := crd.SchemaOf("Machine")
	if err != nil {
		return nil, err
	}
	spec := s.Structural.Properties["spec"]
	wish, err := fields(d.Spec.Template.Spec)
	if err != nil {
		return nil, err
	}
	own, findings, err := ownFields(m, &spec, wish)
	if err != nil {
		return nil, err
	}
	a := &applied{own: own}
	merged := a.merge(&spec, own, wish, "spec")
	for _, field := range a.overridden {
		findings = append(findings, upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingOverridden,
			Message: fmt.Sprintf("%s is set on the Machine itself and stays as it is there, whatever the template of MachineDeployment %s says: take it off the Machine to follow the pool", field, d.Name)})
	}
	m.Spec = v1alpha1.MachineSpec{}
	return findings, convert(merged, &m.Spec)
}

// ownFields are the fields of a Machine that others than the template have set. Who did
// is in its managed fields; a Machine without them that comes out of a cluster has most
// likely got from the template what the template names.
func ownFields(m *machine, spec *schema.Structural, wish map[string]any) (map[string]any, []upgrade.Finding, error) {
	all, err := fields(m.Spec)
	if err != nil {
		return nil, nil, err
	}
	managed := slices.DeleteFunc(slices.Clone(m.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
	if len(managed) == 0 {
		if m.UID == "" {
			return all, nil, nil
		}
		own, _ := subtract(spec, all, wish).(map[string]any)
		if own == nil {
			own = map[string]any{}
		}
		if equality.Semantic.DeepEqual(own, all) {
			return all, nil, nil
		}
		return own, []upgrade.Finding{{Severity: upgrade.SeverityInfo, Reason: FindingOwnersUnknown,
			Message: "the Machine comes without managedFields, so that what its template names is taken for the template's and not for set on the Machine itself: kubectl get --show-managed-fields keeps them"}}, nil
	}
	var written, others any
	for _, entry := range managed {
		if entry.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
			return nil, nil, fmt.Errorf("reading the managed fields of Machine %s: %w", m.Name, err)
		}
		set, _ = set["f:spec"].(map[string]any)
		if entry.Manager == TemplateManager {
			written = (&applied{}).merge(spec, written, owned(all, set), "")
		} else if set != nil {
			others = (&applied{}).merge(spec, others, owned(all, set), "")
		}
	}
	own := all
	if written != nil { // what nobody is said to own is not the template's
		own = union(spec, union(spec, map[string]any{}, subtract(spec, all, written)), others)
	}
	return edited(m, spec, own, all)
}

// edited adds what a file changes of the cluster's Machine: whoever changes a field owns it.
func edited(m *machine, spec *schema.Structural, own, all map[string]any) (map[string]any, []upgrade.Finding, error) {
	if m.live == nil || m.object == nil {
		return own, nil, nil
	}
	live, err := fields(m.live.Spec)
	if err != nil {
		return nil, nil, err
	}
	return union(spec, own, changed(spec, live, all)), nil, nil
}

func union(spec *schema.Structural, own map[string]any, more any) map[string]any {
	fields, ok := more.(map[string]any)
	if !ok {
		return own
	}
	merged, _ := (&applied{}).merge(spec, own, fields, "").(map[string]any)
	return merged
}

// applied is one application of a template.
type applied struct {
	own        map[string]any
	overridden []string
}

// merge lays wish under own: what both have and differ in is own's.
func (a *applied) merge(s *schema.Structural, own, wish any, path string) any {
	switch {
	case own == nil:
		return wish
	case wish == nil:
		return own
	}
	ownFields, isMap := own.(map[string]any)
	wishFields, both := wish.(map[string]any)
	if isMap && both && !atomicMap(s) {
		return a.mergeMaps(s, ownFields, wishFields, path)
	}
	ownItems, isList := own.([]any)
	wishItems, both := wish.([]any)
	if isList && both && keyOf(s) != nil {
		return a.mergeLists(s, ownItems, wishItems, path)
	}
	if !equality.Semantic.DeepEqual(own, wish) {
		a.overridden = append(a.overridden, path)
	}
	return own
}

func (a *applied) mergeMaps(s *schema.Structural, own, wish map[string]any, path string) any {
	out := map[string]any{}
	for key, value := range own {
		out[key] = value
	}
	for _, key := range sorted(wish) {
		out[key] = a.merge(child(s, key), out[key], wish[key], path+"."+key)
	}
	return out
}

func (a *applied) mergeLists(s *schema.Structural, own, wish []any, path string) any {
	key := keyOf(s)
	out := slices.Clone(own)
	for _, item := range wish {
		at := slices.IndexFunc(out, func(o any) bool { return key(o) == key(item) })
		if at < 0 {
			out = append(out, item)
			continue
		}
		out[at] = a.merge(s.Items, out[at], item, fmt.Sprintf("%s[%s]", path, key(item)))
	}
	return out
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func child(s *schema.Structural, key string) *schema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[key]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

func atomicMap(s *schema.Structural) bool {
	return s != nil && s.XMapType != nil && *s.XMapType == "atomic"
}

// keyOf tells the items of a list apart; nil for a list that is one value.
func keyOf(s *schema.Structural) func(any) string {
	if s == nil || s.XListType == nil {
		return nil
	}
	switch *s.XListType {
	case "set":
		return func(item any) string { return fmt.Sprint(item) }
	case "map":
		return func(item any) string {
			fields, _ := item.(map[string]any)
			parts := make([]string, 0, len(s.XListMapKeys))
			for _, key := range s.XListMapKeys {
				parts = append(parts, fmt.Sprintf("%s=%v", key, fields[key]))
			}
			return strings.Join(parts, ",")
		}
	}
	return nil
}

// subtract takes the fields that the template names away.
func subtract(s *schema.Structural, all, wish any) any {
	allFields, isMap := all.(map[string]any)
	wishFields, both := wish.(map[string]any)
	if isMap && both && !atomicMap(s) {
		out := map[string]any{}
		for key, value := range allFields {
			if named, ok := wishFields[key]; ok {
				value = subtract(child(s, key), value, named)
			}
			if value != nil {
				out[key] = value
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	items, isList := all.([]any)
	wishItems, both := wish.([]any)
	key := keyOf(s)
	if !isList || !both || key == nil {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		return slices.ContainsFunc(wishItems, func(w any) bool { return key(w) == key(item) })
	})
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// changed is what of now is not as it was before.
func changed(s *schema.Structural, before, now any) any {
	beforeFields, isMap := before.(map[string]any)
	nowFields, both := now.(map[string]any)
	if isMap && both && !atomicMap(s) {
		out := map[string]any{}
		for key, value := range nowFields {
			if value = changed(child(s, key), beforeFields[key], value); value != nil {
				out[key] = value
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	key := keyOf(s)
	items, isList := now.([]any)
	if isList && key != nil {
		beforeItems, _ := before.([]any)
		kept := slices.DeleteFunc(slices.Clone(items), func(item any) bool {
			return slices.ContainsFunc(beforeItems, func(b any) bool { return equality.Semantic.DeepEqual(b, item) })
		})
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	if equality.Semantic.DeepEqual(before, now) {
		return nil
	}
	return now
}

// owned is the part of a value that a set of managed fields covers.
func owned(value any, set map[string]any) any {
	switch at := value.(type) {
	case map[string]any:
		return ownedFields(at, set)
	case []any:
		return ownedItems(at, set)
	}
	return value
}

func inside(set map[string]any) bool {
	for key := range set {
		if key != "." {
			return true
		}
	}
	return false
}

func ownedFields(value, set map[string]any) any {
	if !inside(set) {
		return value
	}
	out := map[string]any{}
	for key, below := range set {
		name, isField := strings.CutPrefix(key, "f:")
		child, there := value[name]
		if !isField || !there {
			continue
		}
		fields, _ := below.(map[string]any)
		out[name] = owned(child, fields)
	}
	return out
}

func ownedItems(items []any, set map[string]any) any {
	if !inside(set) {
		return items
	}
	var out []any
	for _, item := range items {
		for key, below := range set {
			if !selects(key, item) {
				continue
			}
			fields, _ := below.(map[string]any)
			out = append(out, owned(item, fields))
			break
		}
	}
	if out == nil {
		return nil
	}
	return out
}

// selects says whether a key of managed fields (k: a map item's keys, v: a set's value) is an item's.
func selects(key string, item any) bool {
	if text, ok := strings.CutPrefix(key, "v:"); ok {
		var value any
		return json.Unmarshal([]byte(text), &value) == nil && value == item
	}
	text, ok := strings.CutPrefix(key, "k:")
	fields, isMap := item.(map[string]any)
	if !ok || !isMap {
		return false
	}
	var keys map[string]any
	if json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	for name, want := range keys {
		if fields[name] != want {
			return false
		}
	}
	return true
}

func fields(value any) (map[string]any, error) {
	out := map[string]any{}
	return out, convert(value, &out)
}

func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encoding a spec: %w", err)
	}
	if err := kjson.Unmarshal(data, to); err != nil {
		return fmt.Errorf("decoding a spec: %w", err)
	}
	return nil
}
