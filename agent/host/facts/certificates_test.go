package facts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func certificateOf(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// managers are who renews each certificate of a host, by its path.
func managers(t *testing.T, content map[string]string) map[string]string {
	t.Helper()
	g := gather(New(tree(t, content), units{}))
	require.NoError(t, g.certificates(t.Context()))
	out := map[string]string{}
	for _, c := range g.facts.Certs {
		out[c.Path] = c.ManagedBy
	}
	return out
}

func TestWhoRenewsACertificateIsPartOfTheFacts(t *testing.T) {
	const pki = "/etc/kubernetes/pki/"
	one := certificateOf(t, "x")
	stacked := map[string]string{
		pki + "ca.crt": one, pki + "ca.key": "", pki + "apiserver.crt": one, pki + "my-own.crt": one,
		pki + "front-proxy-client.crt": one, pki + "front-proxy-ca.key": "",
		pki + "apiserver-etcd-client.crt": one, pki + "etcd/server.crt": one, pki + "etcd/ca.key": "",
		"/etc/kubernetes/manifests/etcd.yaml":             "",
		"/var/lib/kubelet/pki/kubelet-client-current.pem": one,
		"/var/lib/kubelet/pki/kubelet.crt":                one,
		"/etc/kubernetes/kubelet.conf":                    "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem}}]\n",
	}
	assert.Equal(t, map[string]string{
		pki + "ca.crt": "", pki + "my-own.crt": "", pki + "apiserver.crt": upgrade.ManagedByKubeadm, pki + "front-proxy-client.crt": upgrade.ManagedByKubeadm,
		pki + "apiserver-etcd-client.crt": upgrade.ManagedByKubeadm, pki + "etcd/server.crt": upgrade.ManagedByKubeadm,
		"/var/lib/kubelet/pki/kubelet-client-current.pem": upgrade.ManagedByKubelet, "/var/lib/kubelet/pki/kubelet.crt": "",
	}, managers(t, stacked))

	delete(stacked, pki+"ca.key")
	delete(stacked, pki+"etcd/ca.key")
	external := managers(t, stacked)
	assert.Equal(t, upgrade.ManagedByExternal, external[pki+"apiserver.crt"], "an external CA")
	assert.Equal(t, upgrade.ManagedByExternal, external[pki+"etcd/server.crt"])
	assert.Equal(t, upgrade.ManagedByKubeadm, external[pki+"front-proxy-client.crt"], "each by its own CA")

	delete(stacked, "/etc/kubernetes/manifests/etcd.yaml")
	assert.Empty(t, managers(t, stacked)[pki+"apiserver-etcd-client.crt"], "an etcd elsewhere is not kubeadm's")
}
