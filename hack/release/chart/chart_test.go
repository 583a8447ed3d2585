package chart_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/hack/release/chart"
)

const (
	deploy = "../../../deploy"
	keep   = "helm.sh/resource-policy"
)

type object = map[string]any

// render has Helm's own engine render the chart at path with some values.
func render(t *testing.T, path, values string) (map[string]object, error) {
	t.Helper()
	c, err := loader.Load(path)
	require.NoError(t, err)
	var given map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(values), &given))
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "refit", Namespace: "kube-system", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(c, all)
	require.NoError(t, err)
	out := map[string]object{}
	for name, text := range texts {
		if strings.HasSuffix(name, ".yaml") {
			decode(t, name, text, out)
		}
	}
	return out, nil
}

func rendered(t *testing.T, path, values string) map[string]object {
	t.Helper()
	out, err := render(t, path, values)
	require.NoError(t, err)
	return out
}

func decode(t *testing.T, file, text string, into map[string]object) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, file)
		if len(o) == 0 {
			continue
		}
		key := title(o)
		require.NotContains(t, into, key, "twice, the second time in %s", file)
		into[key] = o
	}
}

func title(o object) string {
	meta := o["metadata"].(object)
	namespace, _ := meta["namespace"].(string)
	return o["kind"].(string) + " " + strings.TrimPrefix(namespace+"/"+meta["name"].(string), "/")
}

// plain are the manifests that kubectl refit install applies.
func plain(t *testing.T) map[string]object {
	t.Helper()
	out := map[string]object{}
	for _, dir := range []string{"crds", "policy", "coordinator"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(deploy, dir), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			decode(t, name, string(text), out)
			return nil
		}))
	}
	return out
}

// kept takes Helm's word off an object, and says whether it had it.
func kept(o object) bool {
	meta := o["metadata"].(object)
	annotations, _ := meta["annotations"].(object)
	word := annotations[keep] == "keep"
	delete(annotations, keep)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	return word
}

func TestTheChartByDefaultIsThePlainManifests(t *testing.T) {
	want, got := plain(t), rendered(t, deploy+"/chart", "")
	require.Greater(t, len(want), 20)
	for name, o := range want {
		if !assert.Contains(t, got, name) {
			continue
		}
		holdsData := o["kind"] == "CustomResourceDefinition" || name == "Namespace refit"
		assert.Equal(t, holdsData, kept(got[name]), "%s: what the Machines would go with stays, and nothing else", name)
		assert.Equal(t, o, got[name], name)
	}
	for name := range got {
		assert.Contains(t, want, name)
	}
}

func TestHelmFindsNoFaultInTheChart(t *testing.T) {
	for _, m := range lint.AllWithKubeVersion(deploy+"/chart", nil, "kube-system", nil).Messages {
		assert.Less(t, m.Severity, support.ErrorSev, m.Error())
		if !strings.Contains(m.Error(), "icon is recommended") {
			assert.Less(t, m.Severity, support.WarningSev, m.Error())
		}
	}
}

func TestValuesReachWhatTheyAreFor(t *testing.T) {
	got := rendered(t, deploy+"/chart", `
image: {repository: "registry.example:5000/refit-coordinator", tag: v9}
replicas: 3
priorityClassName: mine
resources: {limits: {memory: 1Gi}}
namespaces: {machines: site-7, coordinator: ops}
networkPolicy: {extraEgress: [{ports: [{port: 16443}]}]}`)
	require.Contains(t, got, "Deployment ops/refit-coordinator")
	spec := got["Deployment ops/refit-coordinator"]["spec"].(object)
	pod := spec["template"].(object)["spec"].(object)
	container := pod["containers"].([]any)[0].(object)
	assert.EqualValues(t, 3, spec["replicas"])
	assert.Equal(t, "mine", pod["priorityClassName"])
	assert.Equal(t, "registry.example:5000/refit-coordinator:v9", container["image"])
	assert.Equal(t, object{"memory": "1Gi"}, container["resources"].(object)["limits"])
	assert.NotEmpty(t, container["resources"].(object)["requests"], "Helm merges what is given with the defaults")
	assert.Equal(t, []any{"--namespace=site-7", "--leader-election-namespace=ops"}, container["args"])
	egress := got["NetworkPolicy ops/refit-coordinator"]["spec"].(object)["egress"].([]any)
	assert.Contains(t, egress, object{"ports": []any{object{"port": float64(16443)}}})

	text, err := yaml.Marshal(got)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "refit-system", "the coordinator's user is named in policies and bindings")
	assert.Contains(t, string(text), "system:serviceaccount:ops:refit-coordinator")
	assert.Contains(t, got, "Namespace site-7")
	assert.Contains(t, got, "Role site-7/refit-coordinator")
}

func TestWhatSomebodyElseSeesToIsLeftOut(t *testing.T) {
	got := rendered(t, deploy+"/chart", "namespaces: {create: false}\ncrds: {install: false}\nnetworkPolicy: {enabled: false}")
	for name, o := range got {
		assert.NotContains(t, []any{"Namespace", "CustomResourceDefinition", "NetworkPolicy"}, o["kind"], name)
	}
	assert.Contains(t, got, "Deployment refit-system/refit-coordinator")
}

func TestAMisspeltValueIsRefused(t *testing.T) {
	for _, values := range []string{"replica: 3", "image: {name: x}", "replicas: many", "namespaces: {machines: Not_A_Name}"} {
		_, err := render(t, deploy+"/chart", values)
		require.Error(t, err, values)
	}
}

func TestAPackedChartIsTheChartOfItsRelease(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	first, err := chart.Pack(deploy+"/chart", "v1.2.3", at, t.TempDir())
	require.NoError(t, err)
	assert.Equal(t, "refit-1.2.3.tgz", filepath.Base(first))
	got := rendered(t, first, "image: {repository: r/refit-coordinator}")
	pod := got["Deployment refit-system/refit-coordinator"]["spec"].(object)["template"].(object)["spec"].(object)
	assert.Equal(t, "r/refit-coordinator:v1.2.3", pod["containers"].([]any)[0].(object)["image"])

	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(deploy+"/chart")))
	second, err := chart.Pack(copied, "v1.2.3", at, t.TempDir())
	require.NoError(t, err)
	one, err := os.ReadFile(first)
	require.NoError(t, err)
	two, err := os.ReadFile(second)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(one, two), "the same chart gives the same bytes")

	_, err = chart.Pack(filepath.Join(copied, "nowhere"), "v1.2.3", at, t.TempDir())
	require.ErrorContains(t, err, "nowhere")
}
