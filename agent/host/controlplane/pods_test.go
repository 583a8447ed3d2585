package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/runtime"
)

type containers struct {
	list    []runtime.Container
	err     error
	stopped string
}

func (c *containers) Containers(context.Context) ([]runtime.Container, error) { return c.list, c.err }

func (c *containers) StopContainer(_ context.Context, id string) error {
	c.stopped = id
	return c.err
}

func TestTheContainerOfAComponentIsTheNewestOfItsPod(t *testing.T) {
	c := &containers{list: []runtime.Container{
		{ID: "old", Name: "etcd", Namespace: "kube-system", CreatedAt: 1},
		{ID: "new", Name: "etcd", Namespace: "kube-system", CreatedAt: 3},
		{ID: "tenant", Name: "etcd", Namespace: "vcluster", CreatedAt: 9},
		{ID: "api", Name: "kube-apiserver", Namespace: "kube-system", CreatedAt: 2},
	}}
	p := Pods{New(t.TempDir()), c}
	id, err := p.Container(t.Context(), "etcd")
	require.NoError(t, err)
	assert.Equal(t, "new", id)
	id, err = p.Container(t.Context(), "kube-scheduler")
	require.NoError(t, err)
	assert.Empty(t, id, "none runs")
	require.NoError(t, p.Stop(t.Context(), "new"))
	assert.Equal(t, "new", c.stopped)
	c.err = errors.New("no daemon")
	_, err = p.Container(t.Context(), "etcd")
	require.ErrorIs(t, err, c.err)
}

// component is a server of TLS, and a manifest that says where it is.
func component(t *testing.T, ill *atomic.Bool) (*httptest.Server, *url.URL) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			http.Error(w, "etcd failed: no leader", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	return server, at
}

func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func anotherCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestAComponentAnswersWhenItIsWellAndServesWhatIsOnDisk(t *testing.T) {
	for name, manifestOf := range map[string]func(at *url.URL) string{
		"kube-apiserver": func(at *url.URL) string {
			return "--advertise-address=" + at.Hostname() + ", --secure-port=" + at.Port() + ", --tls-cert-file=/pki/serving.crt"
		},
		"etcd": func(at *url.URL) string {
			return `"--listen-client-urls=https://` + at.Host + `,https://192.0.2.1:2379", --cert-file=/pki/serving.crt`
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ill atomic.Bool
			server, at := component(t, &ill)
			p := Pods{New(t.TempDir()), &containers{}}
			require.ErrorIs(t, p.Answers(t.Context(), name), os.ErrNotExist)
			write(t, p.ControlPlane, manifestDir+"/"+name+".yaml", "spec:\n  containers:\n  - name: "+name+"\n    command: ["+name+", "+manifestOf(at)+"]\n")
			write(t, p.ControlPlane, caPath, pemOf(server))
			require.ErrorContains(t, p.Answers(t.Context(), name), "serving.crt")
			write(t, p.ControlPlane, "/pki/serving.crt", "no certificate")
			require.ErrorContains(t, p.Answers(t.Context(), name), "no certificate in it")
			write(t, p.ControlPlane, "/pki/serving.crt", pemOf(server))
			require.NoError(t, p.Answers(t.Context(), name))

			// Another pair on disk than the one that was loaded at the start.
			write(t, p.ControlPlane, "/pki/serving.crt", anotherCertificate(t))
			require.ErrorContains(t, p.Answers(t.Context(), name), "serves another certificate than the one in /pki/serving.crt")
			write(t, p.ControlPlane, "/pki/serving.crt", pemOf(server))
			ill.Store(true)
			require.ErrorContains(t, p.Answers(t.Context(), name), "no leader")
			server.Close()
			require.Error(t, p.Answers(t.Context(), name))
		})
	}
}

func TestControllerManagerAndSchedulerAreAskedForTheirHealth(t *testing.T) {
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		for _, down := range []bool{false, true} {
			var ill atomic.Bool
			ill.Store(down)
			_, at := component(t, &ill)
			p := Pods{New(t.TempDir()), &containers{}}
			write(t, p.ControlPlane, manifestDir+"/"+name+".yaml", "spec:\n  containers:\n  - name: "+name+"\n    command: ["+name+", --bind-address="+at.Hostname()+", --secure-port="+at.Port()+"]\n")
			err := p.Answers(t.Context(), name)
			assert.Equal(t, down, err != nil, "%s: %v", name, err)
		}
	}
	require.ErrorContains(t, Pods{New(t.TempDir()), &containers{}}.Answers(t.Context(), "kube-vip"), "no component")
}
