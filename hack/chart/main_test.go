package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/deploy"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: refit-coordinator, namespace: refit-system}
spec:
  replicas: 2
  template:
    spec:
      priorityClassName: high
      containers: [{name: c, image: "refit-coordinator:dev", resources: {limits: {memory: 1Mi}}}]
`

func of(t *testing.T, name, text string) (map[string]string, error) {
	t.Helper()
	return generate(fstest.MapFS{"coordinator/deployment.yaml": {Data: []byte(deployment)}, name: {Data: []byte(text)}})
}

func TestTheChartIsThatOfTheManifests(t *testing.T) {
	files, err := generate(deploy.Manifests)
	require.NoError(t, err)
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join("../../deploy/chart", name))
		require.NoError(t, err)
		assert.Equal(t, want, string(have), "%s: run make generate", name)
	}
	there, err := os.ReadDir("../../deploy/chart/templates")
	require.NoError(t, err)
	for _, e := range there {
		assert.Contains(t, files, "templates/"+e.Name(), "a manifest is gone: run make generate")
	}
}

func TestNoMarkIsLeft(t *testing.T) {
	files, err := generate(deploy.Manifests)
	require.NoError(t, err)
	for name, text := range files {
		for _, mark := range []string{markMachines, markSystem, markImage, markReplicas, markPriority, markResources, markEgress} {
			assert.NotContains(t, text, mark, name)
		}
	}
}

func TestTextInManifestsIsNoTemplate(t *testing.T) {
	files, err := of(t, "crds/x.yaml", "kind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {description: 'like {{ .Values.x }} here'}\n")
	require.NoError(t, err)
	assert.Contains(t, files["templates/crds-x.yaml"], `like {{ "{{" }} .Values.x }} here`)
	assert.Contains(t, files["templates/crds-x.yaml"], "helm.sh/resource-policy: keep")
}

func TestOnlyTheTwoNamespacesFollowValues(t *testing.T) {
	files, err := of(t, "a/b.yaml", `
kind: RoleBinding
metadata: {name: refit, namespace: refit}
subjects: [{kind: ServiceAccount, name: refit-coordinator, namespace: refit-system}, {kind: ServiceAccount, name: x, namespace: kube-node-lease}]
`)
	require.NoError(t, err)
	text := files["templates/a-b.yaml"]
	assert.Contains(t, text, "name: refit\n")
	assert.Contains(t, text, "namespace: {{ .Values.namespaces.machines }}\n")
	assert.Contains(t, text, "namespace: {{ .Values.namespaces.coordinator }}\n")
	assert.Contains(t, text, "namespace: kube-node-lease\n")
}

func TestAManifestThatValuesDoNotFitIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"two containers": {"containers: [", "containers: [{name: side}, ", "the pod has 2"},
		"no tag":         {"refit-coordinator:dev", "refit-coordinator", "an image with a tag"},
		"no replicas":    {"replicas: 2", "paused: false", "must set replicas"},
		"no resources":   {", resources: {limits: {memory: 1Mi}}", "", "must set replicas"},
		"no metadata":    {"metadata: {name: refit-coordinator, namespace: refit-system}\n", "", "no metadata"},
		"no YAML":        {"kind: Deployment", "kind: [", "decoding"},
		"no Deployment":  {"kind: Deployment", "kind: StatefulSet", "no Deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(deployment, tc.from, tc.to, 1)
			require.NotEqual(t, deployment, text)
			_, err := generate(fstest.MapFS{"coordinator/deployment.yaml": {Data: []byte(text)}})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestATemplateWhoseManifestIsGoneGoesToo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, write(dir, map[string]string{"templates/old.yaml": "x", "Chart.yaml": "y"}))
	require.NoError(t, write(dir, map[string]string{"templates/new.yaml": "x", "Chart.yaml": "z"}))
	assert.NoFileExists(t, filepath.Join(dir, "templates/old.yaml"))
	assert.FileExists(t, filepath.Join(dir, "templates/new.yaml"))
}
