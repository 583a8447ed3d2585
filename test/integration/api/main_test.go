package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/pkg/manifest/rules"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const (
	namespace  = "refit"
	deployRoot = "../../../deploy"
)

var (
	server *apiserver.Server
	admin  dynamic.Interface
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	srv, err := apiserver.Launch(ctx)
	if errors.Is(err, apiserver.ErrNoBinaries) && os.Getenv("REFIT_REQUIRE_API") == "" {
		fmt.Println("skipped:", err)
		return 0
	}
	if err != nil {
		fmt.Println("starting the API server:", err)
		return 1
	}
	defer srv.Stop()
	if err := prepare(ctx, srv); err != nil {
		fmt.Println("preparing the API server:", err)
		return 1
	}
	return m.Run()
}

func prepare(ctx context.Context, srv *apiserver.Server) (err error) {
	server = srv
	if admin, err = dynamic.NewForConfig(srv.Admin()); err != nil {
		return err
	}
	if err := srv.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}")); err != nil {
		return err
	}
	policies, err := filepath.Glob(deployRoot + "/policy/*.yaml")
	if err != nil {
		return err
	}
	return srv.ApplyFiles(ctx, policies...)
}

func gvr(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "refit.dev", Version: "v1alpha1", Resource: resource}
}

func machines(c dynamic.Interface) dynamic.ResourceInterface {
	return c.Resource(gvr("machines")).Namespace(namespace)
}

func as(t *testing.T, user string, groups ...string) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(server.As(t, user, groups...))
	require.NoError(t, err)
	return c
}

// asServiceAccount impersonates: to admission, that is the ServiceAccount itself.
func asServiceAccount(t *testing.T, ns, name string) dynamic.Interface {
	t.Helper()
	config := server.Admin()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + ns + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"},
	}
	c, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return c
}

func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": decode(t, spec)}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "refit.dev", Version: "v1alpha1", Kind: kind})
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

// decode reads YAML with whole numbers as integers, as the API does.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, "the test's own YAML")
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &out), "the test's own YAML")
	return out
}

var resources = map[string]string{
	"Machine": "machines", "MachineDeployment": "machinedeployments",
	"MachineDisruptionBudget": "machinedisruptionbudgets", "Ledger": "ledgers",
}

func create(t *testing.T, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	r := admin.Resource(gvr(resources[o.GetKind()])).Namespace(namespace)
	out, err := r.Create(t.Context(), o, metav1.CreateOptions{FieldValidation: "Strict"})
	sameVerdict(t, o, err)
	if err == nil {
		t.Cleanup(func() { _ = r.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
	}
	return out, err
}

// setStatus merges into the status as administrator, whom no policy binds.
func setStatus(t *testing.T, name, status string) {
	t.Helper()
	require.NoError(t, patchStatus(t, admin, name, status))
}

func patchStatus(t *testing.T, c dynamic.Interface, name, status string) error {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": decode(t, status)})
	require.NoError(t, err)
	_, err = machines(c).Patch(t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}, "status")
	return err
}

// sameVerdict has a file with the object judged as well: offline is as strict as the API server.
func sameVerdict(t *testing.T, o *unstructured.Unstructured, verdict error) {
	t.Helper()
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	checks := map[string]func(kind string, object, old map[string]any) ([]manifest.Fault, error){"crd": crd.Check}
	if o.GetKind() == "Machine" {
		checks["rules"] = rules.Check
	}
	for name, check := range checks {
		_, err := manifest.Read([]string{"-"}, manifest.Options{Kinds: []string{o.GetKind()}, Check: check, Stdin: bytes.NewReader(text)})
		assert.Equal(t, verdict == nil, err == nil, "%s: the API server says: %v; a file of it: %v", name, verdict, err)
	}
}
