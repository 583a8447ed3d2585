package machinedeployment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
)

// DefaultRevisionHistoryLimit is that of a MachineDeployment that names none.
const DefaultRevisionHistoryLimit = 10

// AnnotationChangeCause says why a template was changed, for people: that of kubectl.
const AnnotationChangeCause = "kubernetes.io/change-cause"

// revisionData is what a ControllerRevision holds: a merge patch that restores the template.
type revisionData struct {
	Spec struct {
		Template v1alpha1.MachineTemplate `json:"template"`
	} `json:"spec"`
}

// TemplateOf is the template that a revision holds.
func TemplateOf(r *appsv1.ControllerRevision) (v1alpha1.MachineTemplate, error) {
	var data revisionData
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return data.Spec.Template, fmt.Errorf("reading revision %d (ControllerRevision %s): %w", r.Revision, r.Name, err)
	}
	return data.Spec.Template, nil
}

// RevisionsOf are the revisions of a MachineDeployment among others, the oldest first.
func RevisionsOf(d *v1alpha1.MachineDeployment, all []appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for i := range all {
		if owner := metav1.GetControllerOf(&all[i]); owner != nil && owner.UID == d.UID && all[i].DeletionTimestamp.IsZero() {
			out = append(out, &all[i])
		}
	}
	slices.SortFunc(out, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// meaning is a template in a form in which templates that ask for the same are equal:
// whatever the order of keys and the spelling of durations, and without what asks for nothing.
func meaning(t v1alpha1.MachineTemplate) (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encoding the template: %w", err)
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		return "", fmt.Errorf("encoding the template: %w", err)
	}
	prune(value)
	text, err = json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding the template: %w", err)
	}
	return string(text), nil
}

// prune takes out empty objects. What a kubelet makes of one in its configuration is the kubelet's to say.
func prune(value map[string]any) {
	for key, v := range value {
		if fields, ok := v.(map[string]any); ok && key != "configuration" {
			if prune(fields); len(fields) == 0 {
				delete(value, key)
			}
		}
	}
}

// records is what has to be written so that the revisions are true.
type records struct {
	create, update *appsv1.ControllerRevision
	remove         []*appsv1.ControllerRevision
	// current is the revision of the template, once that is written.
	current *appsv1.ControllerRevision
}

func (r records) pending() bool { return r.create != nil || r.update != nil || len(r.remove) > 0 }

// record finds the revision of the template: the one that holds it already, which becomes
// the newest again under a new number, or a new one. The oldest that are in nobody's use go.
func record(d *v1alpha1.MachineDeployment, p *fleet.Pool, known []*appsv1.ControllerRevision) (records, error) {
	var out records
	content, err := meaning(d.Spec.Template)
	if err != nil {
		return out, err
	}
	now, err := CurrentOf(d, known)
	if err != nil {
		return out, err
	}
	newest := int64(0)
	if len(known) > 0 {
		newest = known[len(known)-1].Revision
	}
	if now == nil {
		if out.current, err = newRevision(d, content, newest+1, known); err != nil {
			return out, err
		}
		out.create = out.current
	} else if out.current = now.DeepCopy(); refresh(out.current, d, newest) {
		out.update = out.current
	}
	out.remove = surplus(d, p, known, out.current.Name)
	return out, nil
}

func meaningOf(r *appsv1.ControllerRevision) (string, error) {
	t, err := TemplateOf(r)
	if err != nil {
		return "", err
	}
	return meaning(t)
}

// refresh makes a revision the newest, with the change cause of now.
func refresh(r *appsv1.ControllerRevision, d *v1alpha1.MachineDeployment, newest int64) (changed bool) {
	if r.Revision < newest {
		r.Revision, changed = newest+1, true
	}
	if cause := d.Annotations[AnnotationChangeCause]; r.Annotations[AnnotationChangeCause] != cause {
		setCause(r, cause)
		changed = true
	}
	return changed
}

func setCause(r *appsv1.ControllerRevision, cause string) {
	if cause == "" {
		delete(r.Annotations, AnnotationChangeCause)
		return
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[AnnotationChangeCause] = cause
}

func newRevision(d *v1alpha1.MachineDeployment, content string, number int64, known []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	var data revisionData
	data.Spec.Template = *d.Spec.Template.DeepCopy()
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: raw}, Revision: number}
	r.Namespace, r.Name = d.Namespace, revisionName(d.Name, content, known)
	setCause(r, d.Annotations[AnnotationChangeCause])
	yes := true
	r.OwnerReferences = []metav1.OwnerReference{{ // without blockOwnerDeletion, which takes a permission of its own
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "MachineDeployment", Name: d.Name, UID: d.UID, Controller: &yes,
	}}
	return r, nil
}

// revisionName is the same for the same template, so that two passes make one revision.
// Templates whose hashes collide are told apart by a count.
func revisionName(deployment, content string, known []*appsv1.ControllerRevision) string {
	const longest, hash = 253, 12
	for collisions := 0; ; collisions++ {
		h := fnv.New32a()
		fmt.Fprint(h, content)
		if collisions > 0 {
			fmt.Fprint(h, collisions)
		}
		name := deployment[:min(len(deployment), longest-hash)] + "-" + rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
		if !slices.ContainsFunc(known, func(r *appsv1.ControllerRevision) bool { return r.Name == name }) {
			return name
		}
	}
}

// surplus are the oldest revisions beyond the limit. The current one does not count, and
// none goes that a machine still runs.
func surplus(d *v1alpha1.MachineDeployment, p *fleet.Pool, known []*appsv1.ControllerRevision, current string) []*appsv1.ControllerRevision {
	limit := DefaultRevisionHistoryLimit
	if l := d.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	var old []*appsv1.ControllerRevision
	for _, r := range known {
		if r.Name != current {
			old = append(old, r)
		}
	}
	var out []*appsv1.ControllerRevision
	for i := 0; i < len(old)-limit; i++ {
		if !inUse(p, old[i]) {
			out = append(out, old[i])
		}
	}
	return out
}

// inUse says that a machine which has not come to the current template runs this one.
func inUse(p *fleet.Pool, r *appsv1.ControllerRevision) bool {
	t, err := TemplateOf(r)
	if err != nil {
		return true // what cannot be read is not thrown away
	}
	return slices.ContainsFunc(p.Machines, func(m *fleet.Machine) bool {
		runs, _, _ := upgrade.PartlyUpToDate(t.Spec, m.Status)
		return runs && !current(m, v1alpha1.ConditionUpToDate)
	})
}

// CurrentOf is the revision that holds the template as it is now; nil before there is one.
func CurrentOf(d *v1alpha1.MachineDeployment, known []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	want, err := meaning(d.Spec.Template)
	if err != nil {
		return nil, err
	}
	for _, r := range known {
		has, err := meaningOf(r)
		if err != nil {
			return nil, err
		}
		if has == want {
			return r, nil
		}
	}
	return nil, nil
}
