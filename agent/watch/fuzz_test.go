package watch

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Whose certificate it is decides whose Machine the agent follows: a name comes only out
// of a certificate, and a kubeconfig that cannot be read is named.
func FuzzClientCertificate(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte{1}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := commonName(text)
		if block, _ := pem.Decode(text); block == nil {
			require.Error(t, err)
		}
		file := filepath.Join(t.TempDir(), "client.pem")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		name, err := NodeName(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: file}})
		require.Equal(t, err == nil, name != "")
		if err != nil {
			require.NotEmpty(t, err.Error())
		}
	})
}

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://192.0.2.1:6443\"}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a\nusers: [{name: u, user: {client-certificate: a.pem, client-key: a.pem}}]\n"))
	f.Add([]byte("kind: ["))
	f.Add([]byte("clusters: [{name: \"\"}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "kubelet.conf")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		config, err := LoadConfig(path)
		if err != nil {
			require.ErrorContains(t, err, path)
			require.NotErrorIs(t, err, ErrNoKubeconfig, "it is there")
			return
		}
		require.NotNil(t, config)
	})
}
