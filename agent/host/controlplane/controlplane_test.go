package controlplane

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apiserver is a TLS server that this host's manifest points to.
func apiserver(t *testing.T, handler http.HandlerFunc) *ControlPlane {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "https://"))
	require.NoError(t, err)
	c := New(t.TempDir())
	write(t, c, caPath, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, c, manifestDir+"/kube-apiserver.yaml", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: kube-apiserver\n    image: registry.k8s.io/kube-apiserver:v1.37.2\n    command:\n    - kube-apiserver\n    - --advertise-address="+host+"\n    - --secure-port="+port+"\n")
	return c
}

func write(t *testing.T, c *ControlPlane, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(c.path(path)), 0o755))
	require.NoError(t, os.WriteFile(c.path(path), []byte(content), 0o600))
}

func TestTheVersionIsWhatTheRunningServerAnswers(t *testing.T) {
	c := apiserver(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/version", r.URL.Path)
		_, _ = w.Write([]byte(`{"major":"1","minor":"36+","gitVersion":"v1.36.3-gke.100"}`))
	})
	version, err := c.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3-gke.100", version, "and neither what the manifest says nor what minor says")
	manifests, err := c.Manifests()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"kube-apiserver": "v1.37.2"}, manifests)
}

func TestAnAnswerWithoutAVersionIsAnErrorAndNoDefault(t *testing.T) {
	c := apiserver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"major":"1","minor":""}`)) })
	_, err := c.Version(t.Context())
	require.ErrorContains(t, err, "no gitVersion")
}

func TestAServerThatIsNotLiveSaysWhy(t *testing.T) {
	c := apiserver(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "[-]etcd failed", http.StatusInternalServerError)
	})
	require.ErrorContains(t, c.Livez(t.Context()), "etcd failed")
}

func TestWhereAnonymousIsRefusedTheKubeletsCertificateIsNeeded(t *testing.T) {
	c := apiserver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	_, err := c.Version(t.Context())
	require.ErrorContains(t, err, "client certificate")
}

func TestAnotherServersCertificateIsNotTrusted(t *testing.T) {
	c := apiserver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"gitVersion":"v1.0.0"}`)) })
	write(t, c, caPath, "not a certificate")
	_, err := c.Version(t.Context())
	require.ErrorContains(t, err, caPath)
}

func TestTheProxiesOfTheManifestAreFound(t *testing.T) {
	c := New(t.TempDir())
	env, err := c.ProxyEnvironment()
	require.NoError(t, err)
	assert.Empty(t, env)
	write(t, c, manifestDir+"/kube-apiserver.yaml", "spec:\n  containers:\n  - name: kube-apiserver\n    env:\n    - {name: HTTPS_PROXY, value: \"http://proxy.corp:3128\"}\n    - {name: no_proxy, value: 10.0.0.0/8}\n    - {name: OTHER, value: x}\n")
	env, err = c.ProxyEnvironment()
	require.NoError(t, err)
	assert.Equal(t, []string{"HTTPS_PROXY=http://proxy.corp:3128", "no_proxy=10.0.0.0/8"}, env)
}

func TestAHostWithoutAnAPIServerSaysSo(t *testing.T) {
	c := New(t.TempDir())
	_, err := c.Version(t.Context())
	require.ErrorIs(t, err, ErrNone)
	assert.False(t, c.Exists())
	write(t, c, manifestDir+"/kube-apiserver.yaml", "spec: [")
	_, err = c.Version(t.Context())
	require.ErrorContains(t, err, "kube-apiserver.yaml")
}
