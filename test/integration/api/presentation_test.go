package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// fullStatus has every part of a Machine's status.
const fullStatus = `
host: {machineID: m, bootID: b, systemUUID: s}
versions: {kubelet: v1.36.3, kubeadm: v1.36.3, kubeProxy: v1.36.3, controlPlane: {apiServer: v1.36.2, controllerManager: v1.36.2, scheduler: v1.36.2}, etcd: 3.6.4, containerRuntime: {name: containerd, version: 1.7.28, text: "containerd://1.7.28"}}
os: {id: debian, versionID: "12", prettyName: Debian 12, kernel: 6.1.0, architecture: amd64, packages: [{name: openssl, version: "3"}], rebootRequired: true}
plan: {assignmentID: a, hash: h, disruption: Drain, steps: [one], findings: [{severity: Warning, reason: R, message: M}]}
accepted: {grantID: g}
lastOperation: {id: g, type: Upgrade, state: Processing, step: InstallPackages, stepsDone: 1, stepsTotal: 3, description: d, phases: [{name: Stage, duration: 3s}]}
hostFailure: {reason: R, message: M, terminal: true, attempts: 2}
observedGeneration: 1
observedEpoch: 2
nodeRef: {name: s1, uid: u}
assignment: {id: a, generation: 1, type: Upgrade, target: {kubelet: v1.37.2, os: true}, kubeadmRole: First, skew: {minAPIServer: v1.36.2, maxAPIServer: v1.36.2}, epoch: 2}
grant: {id: g, assignmentID: a, planHash: h, epoch: 2, void: true}
role: Serving
phase: Applying
rolloutFailure: {class: ApplyFailed, reason: R, message: M}
observedRetry: again
history: [{id: g0, type: Upgrade, state: Successful, phases: [{name: Drain, duration: 10s}]}]
conditions: [{type: UpToDate, status: "False", reason: Outdated, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

func TestTheTableShowsWhatIsObserved(t *testing.T) {
	_, err := create(t, object(t, "Machine", "t1", "{roles: [ControlPlane], versions: {kubelet: v1.37.2, containerRuntime: {name: containerd, version: 2.4.2}}}"))
	require.NoError(t, err)
	setStatus(t, "t1", fullStatus)
	columns, cells := table(t, "machines", "t1")
	assert.Equal(t, []string{"Name", "Roles", "Phase", "Kubelet", "Control-Plane", "Etcd", "Runtime", "OS", "UpToDate", "Age", "+Kernel", "+Target", "+Target-Runtime", "+Reason"}, columns)
	cells[9] = "age"
	assert.Equal(t, []any{"t1", `["ControlPlane"]`, "Applying", "v1.36.3", "v1.36.2", "3.6.4", "containerd://1.7.28", "Debian 12", "False", "age", "6.1.0", "v1.37.2", "2.4.2", "Outdated"}, cells)

	_, err = create(t, object(t, "MachineDeployment", "t2", "{selector: {}, template: {spec: {versions: {kubelet: v1.37.2}}}, paused: true}"))
	require.NoError(t, err)
	columns, cells = table(t, "machinedeployments", "t2")
	assert.Equal(t, []string{"Name", "Machines", "UpToDate", "Ready", "In-Flight", "Failed", "Kubelet", "Runtime", "Paused", "Progressing", "Age", "+Message"}, columns)
	assert.Equal(t, "v1.37.2", cells[6])
	assert.Nil(t, cells[8], "nobody has taken it in yet")
}

func TestTheTableShowsThatAPoolPausedItself(t *testing.T) {
	_, err := create(t, object(t, "MachineDeployment", "t4", "{selector: {}, template: {spec: {versions: {kubelet: v1.37.2}}}}"))
	require.NoError(t, err)
	_, cells := table(t, "machinedeployments", "t4")
	assert.Empty(t, cells[8])
	setStatusOf(t, "MachineDeployment", "t4", "{replicas: 1, machines: 2, upToDate: 0, ready: 1, inFlight: 0, paused: FailureThresholdReached}")
	_, cells = table(t, "machinedeployments", "t4")
	assert.Equal(t, "FailureThresholdReached", cells[8])
}

func TestTheTableShowsWhatABudgetAllowsAndWhoIsAway(t *testing.T) {
	_, err := create(t, object(t, "MachineDisruptionBudget", "t5", "{selector: {}, maxUnavailable: 2}"))
	require.NoError(t, err)
	setStatusOf(t, "MachineDisruptionBudget", "t5", "{observedGeneration: 1, machines: 7, unavailable: 1, disruptionsAllowed: 1, unavailableMachines: [w1]}")
	columns, cells := table(t, "machinedisruptionbudgets", "t5")
	assert.Equal(t, []string{"Name", "Min-Available", "Max-Unavailable", "Machines", "Unavailable", "Allowed", "Age", "+Away"}, columns)
	cells[6] = "age"
	assert.Equal(t, []any{"t5", nil, "2", 7.0, 1.0, 1.0, "age", `["w1"]`}, cells)
}

// table asks the API server as kubectl does; columns of the wide output begin with a plus.
func table(t *testing.T, resource, name string) (columns []string, cells []any) {
	t.Helper()
	client, err := rest.HTTPClientFor(server.Admin())
	require.NoError(t, err)
	rc, err := rest.UnversionedRESTClientForConfigAndClient(withCodec(server.Admin()), client)
	require.NoError(t, err)
	raw, err := rc.Get().AbsPath("/apis/refit.dev/v1alpha1/namespaces", namespace, resource, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	require.NoError(t, err)
	var out metav1.Table
	require.NoError(t, json.Unmarshal(raw, &out))
	require.Len(t, out.Rows, 1)
	for _, c := range out.ColumnDefinitions {
		prefix := ""
		if c.Priority > 0 {
			prefix = "+"
		}
		columns = append(columns, prefix+c.Name)
	}
	return columns, out.Rows[0].Cells
}

func setStatusOf(t *testing.T, kind, name, status string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": decode(t, status)})
	require.NoError(t, err)
	_, err = admin.Resource(gvr(resources[kind])).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func TestKindsHaveShortNamesAndOneCategory(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(server.Admin())
	require.NoError(t, err)
	list, err := d.ServerResourcesForGroupVersion("refit.dev/v1alpha1")
	require.NoError(t, err)
	short := map[string][]string{}
	for _, r := range list.APIResources {
		short[r.Name] = r.ShortNames
		if r.Categories != nil {
			assert.Equal(t, []string{"refit"}, r.Categories, r.Name)
		}
	}
	assert.Equal(t, map[string][]string{
		"machines": {"mach"}, "machines/status": nil,
		"machinedeployments": {"machd"}, "machinedeployments/status": nil, "machinedeployments/scale": nil,
		"machinedisruptionbudgets": {"mdb"}, "machinedisruptionbudgets/status": nil,
		"ledgers": nil,
	}, short)
}

func TestEveryFieldOfEveryKindIsDocumented(t *testing.T) {
	fields := 0
	for kind, schema := range schemas(t) {
		walk(kind, schema, func(path string, s apiextensionsv1.JSONSchemaProps) {
			fields++
			if path == kind+".metadata" { // the API server documents it
				return
			}
			assert.NotEmpty(t, s.Description, "%s has no description", path)
			assert.Nil(t, s.Default, "%s has a default: defaults live in pkg/upgrade", path)
		})
	}
	assert.Greater(t, fields, 200)
}

func schemas(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := filepath.Glob(deployRoot + "/crds/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	out := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(text, &crd))
		out[crd.Spec.Names.Kind] = *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return out
}

func walk(path string, s apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	for name, p := range s.Properties {
		visit(path+"."+name, p)
		walk(path+"."+name, p, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(path+"{}", *s.AdditionalProperties.Schema, visit)
	}
}

func withCodec(c *rest.Config) *rest.Config {
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return c
}
