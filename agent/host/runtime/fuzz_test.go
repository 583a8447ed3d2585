package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a runtime says of its configuration has a shape of its own in each version: what is
// not understood is unknown, and does not hide what is.
func FuzzStatus(f *testing.F) {
	f.Add(`{"sandboxImage":"registry.k8s.io/pause:3.8","containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}`, "")
	f.Add(`{"pinnedImages":{"sandbox":"registry.k8s.io/pause:3.10"},"containerd":{"defaultRuntimeName":"kata"}}`, "NetworkPluginNotReady")
	f.Add(`{"containerd":{"runtimes":{"":{"options":null}}}}`, "")
	f.Add(`[]`, "x")
	f.Fuzz(func(t *testing.T, config, reason string) {
		ready := reason == ""
		info := infoFrom(&runtimev1.StatusResponse{
			Status: &runtimev1.RuntimeStatus{Conditions: []*runtimev1.RuntimeCondition{{Type: runtimev1.RuntimeReady, Status: ready, Reason: reason}}},
			Info:   map[string]string{"config": config},
		})
		require.Equal(t, ready, info.Ready)
		require.Equal(t, ready, info.Message == "")
		require.Contains(t, []string{"", "systemd", "cgroupfs"}, info.CgroupDriver)
		infoFrom(nil)
	})
}

func FuzzTag(f *testing.F) {
	f.Add("registry.k8s.io/kube-apiserver:v1.37.2")
	f.Add("reg.corp:5000/etcd")
	f.Add("r/p:3@sha256:abc")
	f.Add("sha256:0123")
	f.Fuzz(func(t *testing.T, image string) {
		tag := Tag(image)
		require.Contains(t, image, tag)
		require.False(t, strings.ContainsAny(tag, "/@"))
		if tag == "" && !strings.ContainsAny(image, "@:") && image != "" {
			require.Equal(t, "v1", Tag(image+":v1"))
		}
	})
}

// Files of a kubelet that names its runtime in either way.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte("containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\ncgroupDriver: systemd\n"), []byte{})
	f.Add([]byte("{}"), []byte("KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=/run/crio/crio.sock --pod-infra-container-image=registry.k8s.io/pause:3.9\"\n"))
	f.Add([]byte("containerRuntimeEndpoint: [a]\n"), []byte("--container-runtime-endpoint \"unix:///x\""))
	f.Fuzz(func(t *testing.T, config, flags []byte) {
		root := t.TempDir()
		dir := filepath.Join(root, "var/lib/kubelet")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), config, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "kubeadm-flags.env"), flags, 0o600))
		endpoint, err := Detect(root)
		if err != nil {
			require.ErrorContains(t, err, "config.yaml")
			_, err = OfHost(root)
			require.Error(t, err)
			return
		}
		require.Equal(t, endpoint, Normalize(endpoint))
		require.False(t, strings.HasPrefix(endpoint, "/"))
		r, err := OfHost(root)
		require.NoError(t, err)
		require.Equal(t, endpoint, r.Endpoint)
	})
}
