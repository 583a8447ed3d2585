package steps

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// disk is a host's files in memory.
type disk map[string]string

func (d disk) Read(path string) ([]byte, fs.FileMode, error) {
	if content, ok := d[path]; ok {
		return []byte(content), 0o600, nil
	}
	return nil, 0, fs.ErrNotExist
}

func (d disk) Write(path string, content []byte, _ fs.FileMode) error {
	d[path] = string(content)
	return nil
}

func (d disk) Remove(path string) error {
	delete(d, path)
	return nil
}

func (disk) Digest(string) (string, error) { return "", fs.ErrNotExist }
func (disk) Sync(string) error             { return nil }

func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}

// What kubeadm has written and nobody has synced may be empty after a loss of power, each file for itself.
func TestFilesThatALossOfPowerHasBrokenAreBroughtBackInPairs(t *testing.T) {
	const crt, key, manifest, conf = "/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/apiserver.key", "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/admin.conf"
	oldCert, oldKey := pair(t)
	newCert, newKey := pair(t)
	for name, tc := range map[string]struct {
		found  map[string]string
		mended []string
	}{
		"nothing is broken":                {map[string]string{crt: newCert, key: newKey}, nil},
		"the key is empty":                 {map[string]string{crt: newCert, key: ""}, []string{crt}},
		"the key is full of zeros":         {map[string]string{crt: newCert, key: "\x00\x00\x00"}, []string{crt}},
		"the certificate is empty":         {map[string]string{crt: "", key: newKey}, []string{crt}},
		"the key is still the old one":     {map[string]string{crt: newCert, key: oldKey}, []string{crt}},
		"the certificate is cut off":       {map[string]string{crt: newCert[:100], key: newKey}, []string{crt}},
		"a manifest is empty":              {map[string]string{manifest: ""}, []string{manifest}},
		"a manifest is new and whole":      {map[string]string{manifest: "kind: Pod\nnew: true\n"}, nil},
		"a kubeconfig is no YAML":          {map[string]string{conf: "a: [b\n"}, []string{conf}},
		"a file that is away is kubeadm's": {map[string]string{conf: "gone"}, nil},
		"two of them":                      {map[string]string{key: "", manifest: ""}, []string{manifest, crt}},
	} {
		t.Run(name, func(t *testing.T) {
			files := disk{crt: oldCert, key: oldKey, manifest: "kind: Pod\n", conf: "kind: Config\n"}
			before := disk{}
			for path, content := range files {
				before[path] = content
			}
			h := &Host{Files: files}
			require.NoError(t, keepFiles(h, kubeadmBackup, rewritten))
			for path, content := range tc.found {
				files[path] = content
				if content == "gone" {
					delete(files, path)
				}
			}
			mended, err := mendFiles(h, kubeadmBackup, rewritten)
			require.NoError(t, err)
			assert.Equal(t, tc.mended, mended)
			for _, path := range mended {
				assert.Equal(t, before[path], files[path], path)
				if path == crt {
					assert.Equal(t, oldKey, files[key], "a certificate comes back with its key")
				}
			}
		})
	}
}

func TestOnlyAnAttemptThatFollowsACutMendsAnything(t *testing.T) {
	files := disk{"/etc/kubernetes/manifests/etcd.yaml": "kind: Pod\n"}
	h := &Host{Files: files}
	require.NoError(t, keepFiles(h, kubeadmBackup, rewritten))
	files["/etc/kubernetes/manifests/etcd.yaml"] = ""
	message, err := afterCut(Run{Host: h, Attempt: 1}, kubeadmBackup, rewritten)
	require.NoError(t, err)
	assert.Empty(t, message, "an owner's file is not ours to judge")
	message, err = afterCut(Run{Host: h, Attempt: 2}, kubeadmBackup, rewritten)
	require.NoError(t, err)
	assert.Contains(t, message, "/etc/kubernetes/manifests/etcd.yaml")
	assert.Equal(t, "kind: Pod\n", files["/etc/kubernetes/manifests/etcd.yaml"])
}
