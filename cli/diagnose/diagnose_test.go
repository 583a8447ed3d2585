package diagnose_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/diagnose"
)

// evil is every kind of credential in one text; none of the words of secrets may be in an archive.
const evil = "https://admin:hunter2a@mirror.corp/deb password=hunter2b --token hunter2c Authorization: Bearer hunter2dhunter2d " +
	`{"client-key-data":"hunter2e"} eyJhbGciOiJSUzI1NiJ9.eyJodW50ZXIyZiI6MX0.c2lnbmF0dXJl abcdef.hunter2ghunter2g ` +
	"-----BEGIN EC PRIVATE KEY-----\nhunter2h\n-----END EC PRIVATE KEY----- LS0tLS1CRUdJTiBodW50ZXIyaQ=="

var secrets = []string{"hunter2", "eyJhbGci", "LS0tLS1CRUdJTi"}

// fill puts the text into every text of an object, and something into every list, map and pointer on the way.
func fill(v reflect.Value, depth int) {
	if depth > 14 || v.Type() == reflect.TypeFor[metav1.Time]() || v.Type() == reflect.TypeFor[metav1.MicroTime]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Name != "ManagedFields" {
				fill(v.Field(i), depth+1)
			}
		}
	default:
	}
}

// world answers with whatever is asked for, filled to the brim; what is in fails is refused.
type world struct {
	client.Reader
	fails map[string]error
	asked []string
}

func filled[T any](o *T) *T {
	fill(reflect.ValueOf(o).Elem(), 0)
	return o
}

func raw(t any) runtime.RawExtension {
	text, _ := json.Marshal(t)
	return runtime.RawExtension{Raw: text}
}

func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	name := reflect.TypeOf(list).Elem().Name()
	w.asked = append(w.asked, name)
	if err := w.fails[name]; err != nil {
		return err
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	items.Set(reflect.MakeSlice(items.Type(), 1, 1))
	o := items.Index(0)
	for _, part := range []string{"Spec", "Status", "ObjectMeta", "Reason", "Message", "InvolvedObject"} {
		if f := o.FieldByName(part); f.IsValid() {
			fill(f, 0)
		}
	}
	switch o := o.Addr().Interface().(type) {
	case *appsv1.ControllerRevision:
		o.Data = raw(map[string]any{"spec": map[string]any{"kubelet": map[string]any{"configuration": map[string]any{"bearerToken": "hunter2j", "x": evil}}}})
	case *corev1.Pod:
		o.Spec.Containers = []corev1.Container{{Name: "coordinator", Env: []corev1.EnvVar{{Name: "DB_PASSWORD", Value: "hunter2k"}, {Name: "X", Value: evil}}}}
	}
	meta, _ := o.Addr().Interface().(client.Object)
	meta.SetName("one")
	meta.SetNamespace("refit-system")
	return nil
}

func (w *world) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	w.asked = append(w.asked, reflect.TypeOf(o).Elem().Name())
	lease, _ := o.(*coordinationv1.Lease)
	fill(reflect.ValueOf(&lease.Spec).Elem(), 0)
	return nil
}

func unpack(t *testing.T, a *diagnose.Archive) map[string]string {
	var out bytes.Buffer
	require.NoError(t, a.Write(&out, "bug"))
	zipped, err := gzip.NewReader(&out)
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[h.Name] = string(text)
	}
}

func collect(t *testing.T, w *world, machines ...string) (*diagnose.Archive, map[string]string) {
	a := diagnose.New(diagnose.Summary{Refit: "v0", Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Namespace: "refit", Machines: machines})
	a.Collect(t.Context(), diagnose.Source{Client: w, Kube: fake.NewClientset(), LogBytes: 1 << 10})
	a.Text("log.txt", evil)
	return a, unpack(t, a)
}

func TestNoSecretIsInAnArchive(t *testing.T) {
	w := &world{}
	_, files := collect(t, w)
	require.Greater(t, len(files), 12)
	for name, text := range files {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s has %q: …%s…", name, secret, text[max(i-120, 0):min(i+60, len(text))])
			}
		}
	}
	assert.Contains(t, files["bug/machines/one.yaml"], "mirror.corp/deb", "what is no secret stays")
	for _, never := range []string{"SecretList", "Secret", "ConfigMapList", "ConfigMap"} {
		assert.NotContains(t, w.asked, never)
	}
}

func TestTheFillReachesEveryText(t *testing.T) {
	text, err := json.Marshal(filled(&v1alpha1.Machine{}))
	require.NoError(t, err)
	assert.Greater(t, strings.Count(string(text), "hunter2a"), 100, "or the test above looks for nothing")
}

func TestWhatCannotBeReadIsListed(t *testing.T) {
	a, files := collect(t, &world{fails: map[string]error{"NodeList": errors.New("nodes is forbidden: token=hunter2")}})
	require.Len(t, a.Summary.NotRead, 1)
	assert.Contains(t, files["bug/summary.yaml"], "what: nodes")
	assert.Contains(t, files["bug/summary.yaml"], "nodes is forbidden: token=REDACTED")
	assert.Contains(t, files, "bug/machines/one.yaml")
	assert.NotContains(t, files, "bug/nodes/one.yaml")
}

func TestOnlyTheMachinesThatAreNamedArePacked(t *testing.T) {
	_, files := collect(t, &world{}, "two")
	assert.NotContains(t, files, "bug/machines/one.yaml")
	assert.NotContains(t, files, "bug/nodes/one.yaml")
	assert.Contains(t, files, "bug/machinedeployments/one.yaml")
	_, files = collect(t, &world{}, "one")
	assert.Contains(t, files, "bug/machines/one.yaml")
	assert.Contains(t, files, "bug/nodes/one.yaml")
}
