package install_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
)

func podManifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := install.Load(deploy.DaemonSet)
	require.NoError(t, err)
	require.NoError(t, install.SetAgentImage(objects, "registry.example.com/refit-agent:v1"))
	return objects
}

// Whoever loosens the pod has to change this test, and to say why in docs/daemonset.md.
func TestThePodHasNothingOfItsHostButWhatIsNamed(t *testing.T) {
	for _, o := range podManifests(t) {
		if o.GetKind() != "DaemonSet" {
			continue
		}
		var d appsv1.DaemonSet
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d))
		spec := d.Spec.Template.Spec
		assert.False(t, spec.HostPID || spec.HostNetwork || spec.HostIPC)
		require.Len(t, spec.Containers, 1)
		c := spec.Containers[0]
		assert.Equal(t, "registry.example.com/refit-agent:v1", c.Image)
		assert.False(t, *c.SecurityContext.Privileged || *c.SecurityContext.AllowPrivilegeEscalation)
		assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		assert.Equal(t, "ALL", string(c.SecurityContext.Capabilities.Drop[0]))
		assert.Empty(t, c.SecurityContext.Capabilities.Add)
		assert.Equal(t, "RuntimeDefault", string(spec.SecurityContext.SeccompProfile.Type))
		var paths []string
		for _, v := range spec.Volumes {
			if v.HostPath != nil {
				paths = append(paths, v.HostPath.Path)
			}
		}
		assert.Equal(t, []string{"/run/dbus", "/etc/machine-id", "/etc/refit", "/var/lib/refit", "/run/refit", "/usr/local/bin", "/etc/systemd/system"}, paths)
		return
	}
	t.Fatal("there is no DaemonSet")
}

func TestHostsGiveUpWhatThePodsHaveInstalled(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	var agents *unstructured.Unstructured
	manifests := podManifests(t)
	for _, o := range manifests {
		if o.GetKind() == "DaemonSet" {
			agents = o
		}
	}
	for name, tc := range map[string]struct {
		there  []client.Object
		record bool
		want   []any // arguments of the pods; nil for none
	}{
		"agents of systemd":      {},
		"pods":                   {there: []client.Object{agents}, want: []any{"leave", "--remove-executor"}},
		"pods, and their data":   {there: []client.Object{agents}, record: true, want: []any{"leave", "--remove-executor", "--remove-record"}},
		"an interrupted removal": {there: []client.Object{&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "refit-agent", Name: "refit-leave"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, o := range tc.there {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			var applied *unstructured.Unstructured
			cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
					require.NoError(t, err)
					applied = &unstructured.Unstructured{Object: text}
					return c.Create(ctx, applied.DeepCopy())
				},
			}).Build()
			var said bytes.Buffer
			require.NoError(t, (&install.Installer{Client: cl, Out: &said}).LeaveHosts(t.Context(), manifests, tc.record))
			var left appsv1.DaemonSetList
			require.NoError(t, cl.List(t.Context(), &left))
			assert.Empty(t, left.Items, said.String())
			if tc.want == nil {
				assert.Nil(t, applied)
				return
			}
			first, _, err := unstructured.NestedSlice(applied.Object, "spec", "template", "spec", "initContainers")
			require.NoError(t, err)
			then, _, err := unstructured.NestedSlice(applied.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			assert.Equal(t, tc.want, first[0].(map[string]any)["args"])
			assert.Equal(t, []any{"wait"}, then[0].(map[string]any)["args"])
			assert.Equal(t, "registry.example.com/refit-agent:v1", first[0].(map[string]any)["image"])
		})
	}
}
