package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const someMetrics = `# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="status",version="v1beta3"} 1
apiserver_request_total{code="200",resource="pods"} 12
`

func TestTheAPIsThatGoAwayAreReadFromTheMetrics(t *testing.T) {
	apis, err := deprecatedIn(strings.NewReader(someMetrics))
	require.NoError(t, err)
	assert.Equal(t, []upgrade.DeprecatedAPIFacts{{
		Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", Subresource: "status", RemovedRelease: "1.32",
	}}, apis, "one that nobody has said the end of does not go away")

	apis, err = deprecatedIn(strings.NewReader("apiserver_request_total 1\n"))
	require.NoError(t, err)
	assert.Empty(t, apis)
	_, err = deprecatedIn(strings.NewReader("<html>a proxy's page</html>"))
	require.ErrorContains(t, err, "none of an API server")
	_, err = deprecatedIn(strings.NewReader(strings.Repeat("x", 2*maxMetricsLine)))
	require.Error(t, err)
}

// Metrics are for administrators: the certificate of admin.conf is shown, and nothing else.
func TestTheMetricsAreAskedForAsTheAdministrator(t *testing.T) {
	c := New(t.TempDir())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != "kubernetes-admin" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		assert.Equal(t, "/metrics", r.URL.Path)
		_, _ = w.Write([]byte(someMetrics))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "https://"))
	require.NoError(t, err)
	write(t, c, caPath, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, c, manifestDir+"/kube-apiserver.yaml", "spec:\n  containers:\n  - name: kube-apiserver\n    command: [kube-apiserver, --advertise-address="+host+", --secure-port="+port+"]\n")

	_, err = c.DeprecatedAPIs(t.Context())
	require.ErrorContains(t, err, "admin's kubeconfig")

	write(t, c, adminPath, kubeconfigOf(t, "somebody"))
	_, err = c.DeprecatedAPIs(t.Context())
	require.ErrorContains(t, err, "status 403")

	write(t, c, adminPath, kubeconfigOf(t, "kubernetes-admin"))
	apis, err := c.DeprecatedAPIs(t.Context())
	require.NoError(t, err)
	assert.Len(t, apis, 1)
}

func kubeconfigOf(t *testing.T, user string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\nclusters:\n- {name: k, cluster: {server: \"https://lb.example:6443\"}}\nusers:\n- {name: u, user: {client-certificate-data: %s, client-key-data: %s}}\n",
		encode("CERTIFICATE", certificate), encode("PRIVATE KEY", private))
}
