package machinedeployment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// poolAt is a pool with this template, written as a person would.
func poolAt(t *testing.T, template string) *v1alpha1.MachineDeployment {
	t.Helper()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "refit", UID: "1"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(template), &d.Spec.Template.Spec))
	return d
}

// recorded carries out what a pass decides about revisions.
func recorded(t *testing.T, d *v1alpha1.MachineDeployment, p *fleet.Pool, known []*appsv1.ControllerRevision) ([]*appsv1.ControllerRevision, *appsv1.ControllerRevision) {
	t.Helper()
	todo, err := record(d, p, known)
	require.NoError(t, err)
	var all []appsv1.ControllerRevision
	for _, r := range known {
		gone := todo.update != nil && todo.update.Name == r.Name
		for _, old := range todo.remove {
			gone = gone || old.Name == r.Name
		}
		if !gone {
			all = append(all, *r)
		}
	}
	for _, r := range []*appsv1.ControllerRevision{todo.create, todo.update} {
		if r != nil {
			all = append(all, *r)
		}
	}
	return RevisionsOf(d, all), todo.current
}

func numbers(revisions []*appsv1.ControllerRevision) (out []int64) {
	for _, r := range revisions {
		out = append(out, r.Revision)
	}
	return out
}

func kubelet(patch int) string { return fmt.Sprintf("versions: {kubelet: v1.36.%d}", patch) }

func TestATemplateThatComesBackIsItsEarlierRevisionUnderANewNumber(t *testing.T) {
	var known []*appsv1.ControllerRevision
	names := map[int]string{}
	for _, patch := range []int{1, 2, 3, 1} {
		var now *appsv1.ControllerRevision
		known, now = recorded(t, poolAt(t, kubelet(patch)), &fleet.Pool{}, known)
		if was, seen := names[patch]; seen {
			assert.Equal(t, was, now.Name)
		}
		names[patch] = now.Name
	}
	assert.Equal(t, []int64{2, 3, 4}, numbers(known))
	assert.Equal(t, names[1], known[2].Name)
	todo, err := record(poolAt(t, kubelet(1)), &fleet.Pool{}, known)
	require.NoError(t, err)
	assert.False(t, todo.pending(), "nothing is written where nothing has changed")
}

func TestTemplatesThatAskForTheSameAreOneRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"keys in another order":         {"kubelet: {configuration: {maxPods: 9, podPidsLimit: 5}}", "kubelet: {configuration: {podPidsLimit: 5, maxPods: 9}}", true},
		"durations in another spelling": {"drain: {timeout: 30m}", "drain: {timeout: 1800s}", true},
		"what asks for nothing":         {"versions: {kubelet: v1.36.1}", "versions: {kubelet: v1.36.1}\nos: {}\nnode: {labels: {}}", true},
		"an empty kubelet setting":      {"kubelet: {configuration: {}}", "kubelet: {configuration: {evictionHard: {}}}", false},
		"another version":               {kubelet(1), kubelet(2), false},
		"hooks in another order":        {"hooks: {preApply: [a, b]}", "hooks: {preApply: [b, a]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			known, first := recorded(t, poolAt(t, tc.a), &fleet.Pool{}, nil)
			_, second := recorded(t, poolAt(t, tc.b), &fleet.Pool{}, known)
			assert.Equal(t, tc.same, first.Name == second.Name)
		})
	}
}

func TestRevisionsBeyondTheLimitGoUnlessAMachineRunsThem(t *testing.T) {
	runs := func(version string) *fleet.Pool {
		m := machine(false)
		m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: version}
		return &fleet.Pool{Machines: []*fleet.Machine{m}}
	}
	limit := func(n int32) *int32 { return &n }
	for name, tc := range map[string]struct {
		limit *int32
		pool  *fleet.Pool
		kept  []int64
	}{
		"ten and the current one unless told": {nil, &fleet.Pool{}, []int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"two and the current one":             {limit(2), &fleet.Pool{}, []int64{10, 11, 12}},
		"none but the current one":            {limit(0), &fleet.Pool{}, []int64{12}},
		"one that a machine still runs stays": {limit(1), runs("v1.36.3"), []int64{3, 11, 12}},
		"one that no machine runs goes":       {limit(1), runs("v1.35.0"), []int64{11, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			var known []*appsv1.ControllerRevision
			for patch := 1; patch <= 12; patch++ {
				d := poolAt(t, kubelet(patch))
				d.Spec.RevisionHistoryLimit = tc.limit
				known, _ = recorded(t, d, tc.pool, known)
			}
			assert.Equal(t, tc.kept, numbers(known))
		})
	}
}

func TestARevisionHasTheChangeCauseOfItsTemplate(t *testing.T) {
	d := poolAt(t, kubelet(1))
	d.Annotations = map[string]string{AnnotationChangeCause: "CVE-2026-1"}
	known, now := recorded(t, d, &fleet.Pool{}, nil)
	assert.Equal(t, "CVE-2026-1", now.Annotations[AnnotationChangeCause])
	d.Annotations[AnnotationChangeCause] = "CVE-2026-2"
	known, now = recorded(t, d, &fleet.Pool{}, known)
	assert.Equal(t, "CVE-2026-2", now.Annotations[AnnotationChangeCause])
	assert.Equal(t, []int64{1}, numbers(known))
	d.Annotations = nil
	_, now = recorded(t, d, &fleet.Pool{}, known)
	assert.Empty(t, now.Annotations)
}

func TestRevisionsAreNamedWithinTheLimitAndApart(t *testing.T) {
	d := poolAt(t, kubelet(1))
	d.Name = strings.Repeat("x", 253)
	known, now := recorded(t, d, &fleet.Pool{}, nil)
	assert.LessOrEqual(t, len(now.Name), 253)
	content, err := meaning(d.Spec.Template)
	require.NoError(t, err)
	assert.NotEqual(t, now.Name, revisionName(d.Name, content, known), "a hash that collides")
	other := poolAt(t, kubelet(1))
	other.UID = "2"
	assert.Empty(t, RevisionsOf(other, []appsv1.ControllerRevision{*now}), "another pool's are not its own")
}
