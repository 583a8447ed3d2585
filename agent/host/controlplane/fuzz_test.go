package controlplane

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const manifestSeed = `apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver, namespace: kube-system}
spec:
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1.37.2
    command: [kube-apiserver, --advertise-address=192.0.2.1, --secure-port=6443]
    env: [{name: HTTPS_PROXY, value: "http://proxy.corp:3128"}, {name: OTHER, value: x}]
`

// A manifest is somebody's own file: it is read, or it is named as what cannot be read.
func FuzzManifest(f *testing.F) {
	f.Add(manifestSeed)
	f.Add("apiVersion: v1\nkind: Pod\n")
	f.Add("spec: {containers: [null, {command: [\"--secure-port=\"]}]}")
	f.Add("kind: [")
	f.Add(strings.ReplaceAll(manifestSeed, "192.0.2.1", "fd00::1"))
	f.Fuzz(func(t *testing.T, text string) {
		c := New(t.TempDir())
		write(t, c, manifestDir+"/kube-apiserver.yaml", text)
		write(t, c, manifestDir+"/etcd.yaml", strings.ReplaceAll(manifestSeed, "kube-apiserver", "etcd"))
		require.True(t, c.Exists())
		images, err := c.Images()
		require.Equal(t, "registry.k8s.io/etcd:v1.37.2", images["etcd"], "one file does not hide another")
		address, addressErr := c.Address()
		env, envErr := c.ProxyEnvironment()
		if err != nil {
			require.ErrorContains(t, err, manifestDir+"/kube-apiserver.yaml")
			require.Error(t, addressErr)
			require.Error(t, envErr)
			return
		}
		require.NoError(t, addressErr)
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err, "%q", address)
		require.NotEmpty(t, port)
		for _, v := range env {
			name, _, _ := strings.Cut(v, "=")
			require.True(t, strings.HasSuffix(strings.ToLower(name), "_proxy"), "%q", v)
			require.NotContains(t, v, "\x00", "it becomes the environment of a program")
		}
		versions, err := c.Manifests()
		require.NoError(t, err)
		require.Len(t, versions, len(images))
	})
}

func FuzzVersion(f *testing.F) {
	f.Add([]byte(`{"major":"1","minor":"27+","gitVersion":"v1.27.3-eks-a5565ad"}`))
	f.Add([]byte(`{"gitVersion":""}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		version, err := versionIn(body)
		require.Equal(t, err == nil, version != "")
	})
}
