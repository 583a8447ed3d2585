package setup

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// passing is a control plane on its way from v1.35 to v1.37, of which peers read a lot.
func passing() *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: "cp-1", Generation: 1}}
	m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleControlPlane}
	m.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2", ControlPlane: "v1.37.2"}
	m.Status.Versions = &v1alpha1.ObservedVersions{
		Kubelet: "v1.35.4", ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: "v1.35.4", ControllerManager: "v1.35.4", Scheduler: "v1.35.4"},
	}
	m.Status.PassedMinors = []v1alpha1.PassedMinor{{Minor: "v1.36", Releases: []v1alpha1.KubernetesVersion{"v1.36.3"}}}
	m.Status.Assignment = &v1alpha1.Assignment{ID: "1-a", Generation: 1, Target: v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: "v1.36.3"}}}
	m.Status.History = []v1alpha1.HistoryEntry{{ID: "g", State: v1alpha1.OperationSuccessful, From: &v1alpha1.Versions{Kubelet: "v1.34.1"}}}
	return m
}

// change makes one thing of a Machine another.
type change struct {
	path string
	make func()
}

// changesOf are one change of each thing below v: another text, the other truth, nothing
// where there was something.
func changesOf(path string, v reflect.Value) []change {
	var out []change
	set := func(to reflect.Value) { out = append(out, change{path, func() { v.Set(to) }}) }
	switch v.Kind() {
	case reflect.String:
		for _, text := range []string{"", "v1.36.9", "Failed", "Worker"} {
			set(reflect.ValueOf(text).Convert(v.Type()))
		}
	case reflect.Bool:
		set(reflect.ValueOf(!v.Bool()).Convert(v.Type()))
	case reflect.Pointer:
		if v.IsNil() {
			set(reflect.New(v.Type().Elem()))
			break
		}
		set(reflect.Zero(v.Type()))
		out = append(out, changesOf(path, v.Elem())...)
	case reflect.Slice:
		if v.Len() > 0 {
			set(reflect.Zero(v.Type()))
		} else {
			set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			out = append(out, changesOf(path+"[]", v.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out = append(out, changesOf(path+"."+v.Type().Field(i).Name, v.Field(i))...)
			}
		}
	default:
	}
	return out
}

func TestWhateverThePlannerReadsOfAMachineBringsTheOthersAboutAndIsSeenByItself(t *testing.T) {
	peer := passing()
	peer.Name, peer.Status.Assignment = "cp-2", nil
	unassigned := func() *v1alpha1.Machine { m := passing(); m.Status.Assignment = nil; return m }
	planned := func(m *v1alpha1.Machine) upgrade.Fleet { return fleet.ForPlanner([]v1alpha1.Machine{*m, *peer}, nil) }
	changes := func(m *v1alpha1.Machine) []change {
		v := reflect.ValueOf(m).Elem()
		return append(changesOf("spec", v.FieldByName("Spec")), changesOf("status", v.FieldByName("Status"))...)
	}
	read := map[string]bool{}
	for _, base := range []func() *v1alpha1.Machine{passing, unassigned} {
		for i := range changes(base()) {
			old, now := base(), base()
			c := changes(now)[i]
			c.make()
			if equality.Semantic.DeepEqual(planned(old), planned(now)) {
				continue
			}
			read[c.path] = true
			assert.True(t, versionsChanged().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}), c.path)
			var views fleet.Views
			views.Of("refit", 1, []v1alpha1.Machine{*old, *peer}, nil, old)
			_, _, kept := views.Kept("refit", 1, now, nil)
			assert.False(t, kept, "%s: the machine itself may look before its change is counted", c.path)
		}
	}
	for _, path := range []string{"status.PassedMinors", "status.PassedMinors[].Message", "status.Assignment.Target.Versions.ControlPlane", "status.Versions.ControlPlane.APIServer", "spec.MachineTemplateSpec.Versions.Kubelet"} {
		assert.Contains(t, read, path, "the planner does not read it any more")
	}
}

func TestOfANodeWithoutAMachineTheKubeletAndTheControlPlaneBringTheMachinesAbout(t *testing.T) {
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}
	old.Status.NodeInfo.KubeletVersion = "v1.35.4"
	old.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		edit   func(*corev1.Node)
		passes bool
	}{
		"kubelet":       {func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.36.3" }, true},
		"control plane": {func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} }, true},
		"not ready":     {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"another label": {func(n *corev1.Node) { n.Labels = map[string]string{"rack": "r1"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := old.DeepCopy()
			tc.edit(now)
			assert.Equal(t, tc.passes, plannersNodeChanged().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: old, ObjectNew: now}))
		})
	}
}
