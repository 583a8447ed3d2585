package machinedeployment

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
)

// ownedBy has a manager own fields of a Machine, as an API server writes it down.
func ownedBy(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
}

const templateText = `{versions: {kubelet: v1.37.2}, os: {packages: [{name: a, version: "1"}, {name: b, state: Absent}]}, kubelet: {configuration: {maxPods: 200}}}`

const templateFields = `{"f:spec":{"f:versions":{"f:kubelet":{}},"f:kubelet":{"f:configuration":{"f:maxPods":{}}},` +
	`"f:os":{"f:packages":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:version":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:state":{}}}}}}`

func TestATemplateIsInSyncOnlyWhereAnApplyWouldChangeNothing(t *testing.T) {
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	for name, tc := range map[string]struct {
		spec, fields string
		manager      string
		operation    metav1.ManagedFieldsOperationType
		more         []metav1.ManagedFieldsEntry
		want         bool
	}{
		"all is owned and the same":            {spec: templateText, fields: templateFields, want: true},
		"a person has written more":            {spec: `{paused: true, ` + templateText[1:], fields: templateFields, want: true},
		"nothing is owned":                     {spec: templateText},
		"another manager has applied it":       {spec: templateText, fields: templateFields, manager: "argocd"},
		"it was written without an apply":      {spec: templateText, fields: templateFields, operation: update},
		"a value is another":                   {spec: `{versions: {kubelet: v1.36.3}, ` + templateText[len(`{versions: {kubelet: v1.37.2}, `):], fields: templateFields},
		"a value is gone":                      {spec: `{versions: {kubelet: v1.37.2}}`, fields: templateFields},
		"a field is not owned any more":        {spec: templateText, fields: `{"f:spec":{"f:versions":{"f:kubelet":{}}}}`},
		"a field of an earlier template stays": {spec: `{drain: {onTimeout: Fail}, ` + templateText[1:], fields: `{"f:spec":{"f:drain":{"f:onTimeout":{}},` + templateFields[len(`{"f:spec":{`):]},
		"an item of a list is another": {
			spec: `{versions: {kubelet: v1.37.2}, os: {packages: [{name: a, version: "2"}, {name: b, state: Absent}]}, kubelet: {configuration: {maxPods: 200}}}`, fields: templateFields,
		},
		"another one has added an item to a list": {
			spec: `{versions: {kubelet: v1.37.2}, os: {packages: [{name: a, version: "1"}, {name: b, state: Absent}, {name: c}]}, kubelet: {configuration: {maxPods: 200}}}`, fields: templateFields,
		},
		"what is owned cannot be read":  {spec: templateText, fields: `{"f:spec":`},
		"labels are owned as well":      {spec: templateText, fields: `{"f:metadata":{"f:labels":{"f:a":{}}},` + templateFields[1:]},
		"there are two of our readings": {spec: templateText, fields: templateFields, more: []metav1.ManagedFieldsEntry{ownedBy(FieldManager, apply, `{}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			var template v1alpha1.MachineTemplateSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(templateText), &template))
			fields, err := fieldsOf(&template)
			require.NoError(t, err)
			m := &v1alpha1.Machine{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(tc.spec), &m.Spec))
			manager, operation := FieldManager, apply
			if tc.manager != "" {
				manager = tc.manager
			}
			if tc.operation != "" {
				operation = tc.operation
			}
			m.ManagedFields = append(m.ManagedFields, ownedBy("kubectl", update, `{"f:spec":{"f:paused":{}}}`))
			if tc.fields != "" {
				m.ManagedFields = append(m.ManagedFields, ownedBy(manager, operation, tc.fields))
			}
			m.ManagedFields = append(m.ManagedFields, tc.more...)
			assert.Equal(t, tc.want, inSync(fields, m))
		})
	}
}

func TestACoordinatorThatStartsWritesNoTemplateThatIsThereAlready(t *testing.T) {
	written := map[string]int{}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			written[o.(interface{ GetName() string }).GetName()]++
			return nil
		},
	})
	b := New().Deployment("w", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec = v1alpha1.MachineTemplateSpec{Versions: &v1alpha1.Versions{Kubelet: "v1.37.2"}}
	})
	for i := range 3 {
		b.Machine(fmt.Sprintf("w%d", i), "w", v1alpha1.RoleWorker, Of(func(m *v1alpha1.Machine) {
			m.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
			m.ManagedFields = []metav1.ManagedFieldsEntry{ownedBy(FieldManager, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:versions":{"f:kubelet":{}}}}`)}
		}))
	}
	f := b.Build()
	f.Find("w1").Spec.Versions.Kubelet = "v1.36.3"
	pool, words := f.Pools["w"], &board.Board{}
	key := types.NamespacedName{Namespace: f.Find("w2").Namespace, Name: "w2"}
	words.SetOverrides(key, []board.Override{{Field: "spec.versions.kubelet", Manager: "kubectl"}})
	r := &Reconciler{Client: c, Board: words}
	require.NoError(t, r.applyTemplate(t.Context(), &scope{deployment: pool.Deployment.DeepCopy(), pool: pool}))
	assert.Equal(t, map[string]int{"w1": 1}, written)
	left, _ := words.Overrides(key)
	assert.Empty(t, left, "it was released")
}
