package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/plan"
	"github.com/refit-dev/refit/pkg/preview"
)

// noDate leaves certificates unjudged.
var noDate time.Time

func pool(name string, template v1alpha1.MachineTemplateSpec) v1alpha1.MachineDeployment {
	d := v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "refit"}}
	d.Spec.Selector.MatchLabels = map[string]string{"pool": "w"}
	d.Spec.Template.Spec = template
	return d
}

func versions(kubelet, runtime string) v1alpha1.MachineTemplateSpec {
	v := &v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(kubelet)}
	if runtime != "" {
		v.ContainerRuntime = &v1alpha1.ContainerRuntime{Name: "containerd", Version: v1alpha1.ReleaseVersion(runtime)}
	}
	return v1alpha1.MachineTemplateSpec{Versions: v}
}

func liveMachine(spec v1alpha1.MachineTemplateSpec, managed ...metav1.ManagedFieldsEntry) v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w1", Namespace: "refit", UID: "u", Labels: map[string]string{"pool": "w"}, ManagedFields: managed}}
	m.Spec = v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleWorker}, MachineTemplateSpec: spec}
	return m
}

func owner(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

const (
	adopts      = `{"f:spec":{"f:roles":{}}}`
	ownsKubelet = `{"f:spec":{"f:versions":{"f:kubelet":{}}}}`
)

func TestATemplateIsAppliedAsTheCoordinatorAppliesIt(t *testing.T) {
	packages := func(v string) v1alpha1.MachineTemplateSpec {
		return v1alpha1.MachineTemplateSpec{OS: &v1alpha1.OSSpec{Packages: []v1alpha1.Package{{Name: "openssl", Version: v}}}}
	}
	for name, tc := range map[string]struct {
		machine  v1alpha1.Machine
		template v1alpha1.MachineTemplateSpec
		kubelet  string
		findings []string
	}{
		"what the template wrote before changes with it":  {liveMachine(versions("v1.36.3", ""), owner("kubectl-refit", adopts), owner(plan.TemplateManager, ownsKubelet)), versions("v1.37.2", ""), "v1.37.2", nil},
		"what a person has set stays":                     {liveMachine(versions("v1.36.3", ""), owner("kubectl-refit", adopts), owner("kubectl-edit", ownsKubelet)), versions("v1.37.2", ""), "v1.36.3", []string{plan.FindingOverridden}},
		"what both have set to one value stays":           {liveMachine(versions("v1.36.3", ""), owner("kubectl-edit", ownsKubelet), owner(plan.TemplateManager, ownsKubelet)), versions("v1.37.2", ""), "v1.36.3", []string{plan.FindingOverridden}},
		"a person's value that is the template's is none": {liveMachine(versions("v1.37.2", ""), owner("kubectl-edit", ownsKubelet)), versions("v1.37.2", ""), "v1.37.2", nil},
		"what the template no longer names goes":          {liveMachine(versions("v1.36.3", ""), owner("kubectl-refit", adopts), owner(plan.TemplateManager, ownsKubelet)), v1alpha1.MachineTemplateSpec{}, "", nil},
		"without managed fields out of a cluster":         {liveMachine(versions("v1.36.3", "")), versions("v1.37.2", ""), "v1.37.2", []string{plan.FindingOwnersUnknown}},
		"a package beside another's":                      {liveMachine(packages("1"), owner("kubectl-edit", `{"f:spec":{"f:os":{"f:packages":{"k:{\"name\":\"openssl\"}":{".":{},"f:name":{},"f:version":{}}}}}}`)), packages("2"), "", []string{plan.FindingOverridden}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := &plan.Fleet{}
			fleet.AddLive([]v1alpha1.Machine{tc.machine}, []v1alpha1.MachineDeployment{pool("workers", tc.template)}, nil)
			list, err := fleet.Plan(nil, noDate)
			require.NoError(t, err)
			item := list.Items[0]
			assert.Equal(t, "workers", item.MachineDeployment)
			got := ""
			if item.To != nil {
				got = string(item.To.Kubelet)
			}
			assert.Equal(t, tc.kubelet, got)
			assert.Equal(t, []v1alpha1.Role{v1alpha1.RoleWorker}, item.Roles, "a template says nothing of roles")
			var reasons []string
			for _, f := range item.Findings {
				reasons = append(reasons, f.Reason)
			}
			assert.Equal(t, tc.findings, reasons)
		})
	}
}

func TestAFieldThatAFileChangesIsItsOwn(t *testing.T) {
	fleet := &plan.Fleet{}
	live := liveMachine(versions("v1.36.3", "2.1.4"), owner("kubectl-refit", adopts), owner(plan.TemplateManager, `{"f:spec":{"f:versions":{}}}`))
	fleet.AddLive([]v1alpha1.Machine{live}, []v1alpha1.MachineDeployment{pool("workers", versions("v1.37.2", "2.1.5"))}, nil)
	require.NoError(t, fleet.AddObjects(read(t, "{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w1, labels: {pool: w}}, spec: {roles: [Worker], versions: {kubelet: v1.36.9, containerRuntime: {name: containerd, version: 2.1.4}}}}", plan.Kinds)))
	list, err := fleet.Plan(nil, noDate)
	require.NoError(t, err)
	assert.EqualValues(t, "v1.36.9", list.Items[0].To.Kubelet, "the file changes it")
	assert.EqualValues(t, "2.1.5", list.Items[0].To.ContainerRuntime.Version, "the file leaves it as the template wrote it")
}

func TestTwoPoolsThatMatchOneMachineRefuseIt(t *testing.T) {
	fleet := &plan.Fleet{}
	fleet.AddLive([]v1alpha1.Machine{liveMachine(versions("v1.36.3", ""))}, []v1alpha1.MachineDeployment{pool("b", versions("v1.37.2", "")), pool("a", versions("v1.37.3", ""))}, nil)
	list, err := fleet.Plan(nil, noDate)
	require.NoError(t, err)
	require.NotNil(t, list.Items[0].Refusal)
	assert.Equal(t, plan.ReasonConflict, list.Items[0].Refusal.Reason)
	assert.Contains(t, list.Items[0].Refusal.Message, "a and b both match")
	assert.Equal(t, preview.StateRefused, list.Items[0].State)
}

func TestATemplateThatTheAPIServerWouldRefuseOnAMachineRefusesIt(t *testing.T) {
	controlPlane := versions("v1.36.4", "")
	controlPlane.Versions.ControlPlane = "v1.36.4"
	unversioned := v1alpha1.MachineTemplateSpec{Versions: &v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: "podman", Version: "5.0.0"}}}
	for name, tc := range map[string]struct {
		template v1alpha1.MachineTemplateSpec
		want     []string
	}{
		"a version that its role does not have": {controlPlane, []string{"spec", "only for machines with role ControlPlane"}},
		"a value that the schema does not have": {unversioned, []string{"spec.versions.containerRuntime.name", "podman"}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := &plan.Fleet{}
			fleet.AddLive([]v1alpha1.Machine{liveMachine(versions("v1.36.3", ""), owner("kubectl-refit", adopts), owner(plan.TemplateManager, ownsKubelet))}, []v1alpha1.MachineDeployment{pool("workers", tc.template)}, nil)
			list, err := fleet.Plan(nil, noDate)
			require.NoError(t, err)
			item := list.Items[0]
			assert.Equal(t, preview.StateRefused, item.State)
			assert.Empty(t, item.Hops)
			require.NotNil(t, item.Refusal)
			assert.Equal(t, plan.ReasonInvalid, item.Refusal.Reason)
			for _, part := range append(tc.want, "MachineDeployment workers") {
				assert.Contains(t, item.Refusal.Message, part)
			}
		})
	}
}
