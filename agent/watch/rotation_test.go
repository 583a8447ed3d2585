package watch_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent/watch"
)

// writePair puts a certificate for a user and its key into the files that a configuration names.
func writePair(t *testing.T, dir, user string, modified time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(modified.UnixNano()), Subject: pkix.Name{CommonName: user},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	require.NoError(t, os.Chtimes(cert, modified, modified))
	return cert, key
}

// visitors are whom the server has met, by the certificate of the connection, in order.
type visitors struct {
	mu    sync.Mutex
	names []string
	dials map[string]bool
}

func (v *visitors) met(r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.names = append(v.names, r.TLS.PeerCertificates[0].Subject.CommonName)
	v.dials[r.RemoteAddr] = true
}

// rotating is a server with TLS, and a client whose certificate can be replaced.
type rotating struct {
	visitors
	client  *watch.Client
	replace func(user string, modified time.Time)
}

var start = time.Now().Add(-time.Hour)

func newRotating(t *testing.T, handler http.Handler) *rotating {
	t.Helper()
	r := &rotating{visitors: visitors{dials: map[string]bool{}}}
	dir := t.TempDir()
	cert, key := writePair(t, dir, "old", start)
	r.replace = func(user string, modified time.Time) { writePair(t, dir, user, modified) }
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.met(request)
		handler.ServeHTTP(w, request)
	}))
	ts.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	ts.EnableHTTP2 = true
	ts.StartTLS()
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw})
	var err error
	r.client, err = watch.NewClient(&rest.Config{Host: ts.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: ca, CertFile: cert, KeyFile: key,
	}}, "refit", "w1")
	require.NoError(t, err)
	return r
}

func TestAStreamIsOpenedWithTheCertificateThatIsOnDisk(t *testing.T) {
	var r *rotating
	first := func(w http.ResponseWriter, request *http.Request) {
		list("1")(w, request)
		r.replace("new", time.Now())
	}
	r = newRotating(t, &server{answers: []func(http.ResponseWriter, *http.Request){first, events(expired), list("3"), hang}})
	ctx, cancel := context.WithCancel(context.Background())
	stream, done := make(chan watch.Event), make(chan struct{})
	go func() {
		defer close(done)
		(&watch.Watcher{Client: r.client, Spread: 10 * time.Millisecond}).Run(ctx, stream)
	}()
	t.Cleanup(func() { cancel(); <-done })

	assert.Equal(t, "1", next(t, stream).Machine.ResourceVersion)
	assert.Equal(t, "3", next(t, stream).Machine.ResourceVersion)
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Equal(t, "old", r.names[0])
	assert.Equal(t, []string{"new", "new"}, r.names[1:3], "what is opened after the change")
	assert.Len(t, r.dials, 2, "one connection for each certificate")
}

func TestAConnectionIsLeftWhoseCertificateIsRefused(t *testing.T) {
	r := newRotating(t, &server{answers: []func(http.ResponseWriter, *http.Request){failure(http.StatusUnauthorized, nil), get("7")}})
	_, err := r.client.Get(t.Context())
	require.True(t, apierrors.IsUnauthorized(err), err)

	r.replace("new", start) // of the same age: nothing but the refusal tells
	m, err := r.client.Get(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "7", m.ResourceVersion)
	assert.Equal(t, []string{"old", "new"}, r.names)
}

func get(version string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(machine(version))
	}
}

func TestACertificateThatIsNoneIsSaidAtOnce(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "old", time.Now())
	require.NoError(t, os.WriteFile(cert, nil, 0o600))
	_, err := watch.NewClient(&rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CertFile: cert, KeyFile: key}}, "refit", "w1")
	assert.ErrorContains(t, err, "reading the client certificate")
}
