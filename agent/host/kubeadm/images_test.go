package kubeadm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// lister answers as kubeadm v1.37.2 does.
type lister struct {
	argv []string
	tail string
}

func (l *lister) Run(_ context.Context, c command.Command) (command.Result, error) {
	l.argv = c.Argv
	repository := strings.TrimPrefix(c.Argv[len(c.Argv)-1], "--image-repository=")
	var lines []string
	for _, image := range []string{"kube-apiserver:v1.37.2", "kube-controller-manager:v1.37.2", "kube-scheduler:v1.37.2", "kube-proxy:v1.37.2", "coredns:v1.14.6", "pause:3.10.2", "etcd:3.7.0-0"} {
		lines = append(lines, repository+"/"+image)
	}
	return command.Result{Stdout: strings.Join(lines, "\n") + "\n" + l.tail}, nil
}

func staticPod(t *testing.T, root, component, image string) {
	t.Helper()
	dir := filepath.Join(root, "etc/kubernetes/manifests")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + component + "}\nspec:\n  containers:\n  - name: " + component + "\n    image: " + image + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, component+".yaml"), []byte(text), 0o600))
}

func TestTheImagesAreThoseThatThisHostWillRun(t *testing.T) {
	control := upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2", ControlPlane: true}
	worker := upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: "v1.37.2"}
	for name, tc := range map[string]struct {
		upgrade          upgrade.KubeadmUpgrade
		apiServer, etcd  string
		proxy            string
		required, useful []string
	}{
		"a control plane": {
			upgrade: control, apiServer: "reg.corp:5000/k8s/kube-apiserver:v1.36.3", etcd: "reg.corp:5000/k8s/etcd:3.6.8-0", proxy: "reg.corp:5000/k8s/kube-proxy:v1.36.3",
			required: []string{"reg.corp:5000/k8s/kube-apiserver:v1.37.2", "reg.corp:5000/k8s/kube-controller-manager:v1.37.2", "reg.corp:5000/k8s/kube-scheduler:v1.37.2", "reg.corp:5000/k8s/kube-proxy:v1.37.2", "reg.corp:5000/k8s/etcd:3.7.0-0"},
			useful:   []string{"reg.corp:5000/k8s/coredns:v1.14.6", "reg.corp:5000/k8s/pause:3.10.2"},
		},
		"etcd from elsewhere, another proxy than kubeadm's": {
			upgrade: control, apiServer: "r/kube-apiserver@sha256:00", etcd: "other/deep/etcd:3.6.8-0",
			required: []string{"r/kube-apiserver:v1.37.2", "r/kube-controller-manager:v1.37.2", "r/kube-scheduler:v1.37.2", "other/deep/etcd:3.7.0-0"},
			useful:   []string{"r/coredns:v1.14.6", "r/pause:3.10.2"},
		},
		"etcd on other hosts": {
			upgrade: control, apiServer: "r/kube-apiserver:v1.36.3",
			required: []string{"r/kube-apiserver:v1.37.2", "r/kube-controller-manager:v1.37.2", "r/kube-scheduler:v1.37.2"},
			useful:   []string{"r/coredns:v1.14.6", "r/pause:3.10.2"},
		},
		"a worker":                   {upgrade: worker, proxy: "r/kube-proxy:v1.36.3", useful: []string{"r/kube-proxy:v1.37.2", "r/pause:3.10.2"}},
		"a worker without the proxy": {upgrade: worker},
	} {
		t.Run(name, func(t *testing.T) {
			k := New(t.TempDir())
			l := &lister{}
			k.Runner = l
			k.Proxy = func(context.Context) (string, error) { return tc.proxy, nil }
			for component, image := range map[string]string{"kube-apiserver": tc.apiServer, "etcd": tc.etcd} {
				if image != "" {
					staticPod(t, k.Root, component, image)
				}
			}
			required, useful, err := k.Images(t.Context(), "/staged/kubeadm", tc.upgrade)
			require.NoError(t, err)
			assert.Equal(t, tc.required, required)
			assert.Equal(t, tc.useful, useful)
			if len(required)+len(useful) > 0 {
				assert.Equal(t, []string{"/staged/kubeadm", "config", "images", "list", "--kubernetes-version=v1.37.2"}, l.argv[:5])
			}
		})
	}
}

func TestWhatIsNoImageIsNotPulled(t *testing.T) {
	k := New(t.TempDir())
	staticPod(t, k.Root, "kube-apiserver", "r/kube-apiserver:v1.36.3")
	k.Runner = &lister{tail: "--force\n"}
	control := upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2", ControlPlane: true}
	_, _, err := k.Images(t.Context(), "kubeadm", control)
	require.ErrorContains(t, err, `"--force" is no image`)

	k.Runner = &lister{}
	k.Proxy = func(context.Context) (string, error) { return "", errors.New("the runtime is away") }
	_, _, err = k.Images(t.Context(), "kubeadm", control)
	require.ErrorContains(t, err, "the runtime is away")
}

func TestAnEtcdThatLeavesOutAMinorIsRefusedBeforeAnythingIsPulled(t *testing.T) {
	for name, tc := range map[string]struct {
		tag     string
		refused bool
	}{
		"the next minor":   {"3.5.24-0", false},
		"two minors ahead": {"3.4.13-0", true},
	} {
		t.Run(name, func(t *testing.T) {
			now := running{controlPlane: true, manifests: map[string]string{"etcd": "registry.k8s.io/etcd:" + tc.tag}}
			blocked := now.skipsEtcd("registry.k8s.io/etcd:3.6.4-0")
			require.Equal(t, tc.refused, blocked != nil)
			if tc.refused {
				assert.Equal(t, upgrade.ReasonEtcdMinorSkipped, blocked.Reason)
				assert.True(t, blocked.Terminal)
			}
			assert.Nil(t, now.skipsEtcd("registry.k8s.io/kube-apiserver:v1.37.2"))
		})
	}
}
