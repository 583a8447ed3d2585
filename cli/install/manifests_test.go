package install_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestManifestsComeInTheOrderInWhichTheyDepend(t *testing.T) {
	objects, err := install.Load(fstest.MapFS{
		"a/deploy.yaml": file("kind: Deployment\nmetadata: {name: d}\n---\nkind: ServiceAccount\nmetadata: {name: s}\n---\n"),
		"b/crd.yaml":    file("# only a comment\n---\nkind: CustomResourceDefinition\nmetadata: {name: c}"),
		"c/ns.yaml":     file("kind: Namespace\nmetadata: {name: ns}"),
		"c/README.md":   file("not a manifest"),
	})
	require.NoError(t, err)
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	assert.Equal(t, []string{"ns", "c", "s", "d"}, names)

	_, err = install.Load(fstest.MapFS{"x/bad.yaml": file("kind: [")})
	require.ErrorContains(t, err, "x/bad.yaml")
}

func TestTheImageOfTheCoordinatorIsReplaced(t *testing.T) {
	deployment := func(image string) []*unstructured.Unstructured {
		objects, err := install.Load(fstest.MapFS{"d.yaml": file(`
kind: Deployment
metadata: {name: refit-coordinator}
spec: {template: {spec: {containers: [{name: side, image: other:1}, {name: c, image: "` + image + `"}]}}}`)})
		require.NoError(t, err)
		return objects
	}
	for _, image := range []string{"refit-coordinator:dev", "refit-coordinator", "registry:5000/x/refit-coordinator:v1@sha256:abc"} {
		objects := deployment(image)
		require.NoError(t, install.SetImage(objects, "mine:1"), image)
		containers, _, _ := unstructured.NestedSlice(objects[0].Object, "spec", "template", "spec", "containers")
		assert.Equal(t, "other:1", containers[0].(map[string]any)["image"])
		assert.Equal(t, "mine:1", containers[1].(map[string]any)["image"])
	}
	require.ErrorContains(t, install.SetImage(deployment("refit-agent:dev"), "mine:1"), "no Deployment with an image named refit-coordinator")
}

func TestTheShippedManifestsCanBeRead(t *testing.T) {
	objects, err := install.Load(deploy.Manifests)
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
	}
	assert.Equal(t, 4, kinds["CustomResourceDefinition"])
	assert.Equal(t, 5, kinds["ValidatingAdmissionPolicy"])
	assert.Equal(t, 5, kinds["ValidatingAdmissionPolicyBinding"])
}
