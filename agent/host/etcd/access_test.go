package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func host(t *testing.T, files map[string]string) *Etcd {
	t.Helper()
	e := New(t.TempDir())
	for path, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(e.path(path)), 0o700))
		require.NoError(t, os.WriteFile(e.path(path), []byte(content), 0o600))
	}
	return e
}

func pod(name string, flags ...string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers:\n  - name: " + name + "\n    command:\n    - " + name + "\n    - " + strings.Join(flags, "\n    - ") + "\n"
}

func TestTheWayToEtcdIsFoundInWhatTheHostRuns(t *testing.T) {
	const manifests, pki = "/etc/kubernetes/manifests/", "/etc/kubernetes/pki/"
	member := pod("etcd", "--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.4:2379", "--trusted-ca-file=/ca.crt", "--cert-file=/server.crt", "--key-file=/server.key")
	for name, tc := range map[string]struct {
		files map[string]string
		unit  map[string]string
		want  *Access
	}{
		"a worker has none": {files: map[string]string{}},
		"a member of kubeadm's is asked with the certificate made for that": {
			files: map[string]string{manifests + "etcd.yaml": member, pki + "etcd/healthcheck-client.crt": "", pki + "etcd/healthcheck-client.key": ""},
			want:  &Access{Endpoints: []string{"https://127.0.0.1:2379"}, Member: true, CA: "/ca.crt", Cert: pki + "etcd/healthcheck-client.crt", Key: pki + "etcd/healthcheck-client.key"},
		},
		"without that one, with the API server's": {
			files: map[string]string{manifests + "etcd.yaml": member, pki + "apiserver-etcd-client.crt": "", pki + "apiserver-etcd-client.key": ""},
			want:  &Access{Endpoints: []string{"https://127.0.0.1:2379"}, Member: true, CA: "/ca.crt", Cert: pki + "apiserver-etcd-client.crt", Key: pki + "apiserver-etcd-client.key"},
		},
		"without any, with its own": {
			files: map[string]string{manifests + "etcd.yaml": member},
			want:  &Access{Endpoints: []string{"https://127.0.0.1:2379"}, Member: true, CA: "/ca.crt", Cert: "/server.crt", Key: "/server.key"},
		},
		"an etcd elsewhere is the one that the API server names": {
			files: map[string]string{manifests + "kube-apiserver.yaml": pod("kube-apiserver", "--etcd-servers=https://10.0.0.7:2379,https://10.0.0.8:2379", "--etcd-cafile=/etc/ca.crt", "--etcd-certfile=/etc/client.crt", "--etcd-keyfile=/etc/client.key")},
			want:  &Access{Endpoints: []string{"https://10.0.0.7:2379", "https://10.0.0.8:2379"}, CA: "/etc/ca.crt", Cert: "/etc/client.crt", Key: "/etc/client.key"},
		},
		"a member that listens everywhere is asked on the loopback address": {
			unit: map[string]string{"listen-client-urls": "http://0.0.0.0:2379"},
			want: &Access{Endpoints: []string{"http://127.0.0.1:2379"}, Member: true},
		},
		"also on that of IPv6": {
			unit: map[string]string{"listen-client-urls": "http://[::]:2379"},
			want: &Access{Endpoints: []string{"http://[::1]:2379"}, Member: true},
		},
		"one that is open on the loopback address only is asked there, and the others with certificates": {
			unit: map[string]string{"listen-client-urls": "http://127.0.0.1:2379,https://10.0.0.4:2379", "trusted-ca-file": "/ca.crt", "cert-file": "/server.crt", "key-file": "/server.key"},
			want: &Access{Endpoints: []string{"http://127.0.0.1:2379"}, Member: true, CA: "/ca.crt", Cert: "/server.crt", Key: "/server.key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := host(t, tc.files)
			if tc.unit != nil {
				e.Unit = func(context.Context) (func(string) string, error) {
					return func(name string) string { return tc.unit[name] }, nil
				}
			}
			a, err := e.Access(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.want, a)
		})
	}
}

func TestAManifestThatCannotBeReadIsNoHostWithoutEtcd(t *testing.T) {
	e := host(t, map[string]string{"/etc/kubernetes/manifests/etcd.yaml": "{"})
	_, err := e.Access(t.Context())
	require.ErrorContains(t, err, "etcd.yaml")
	e = host(t, map[string]string{"/etc/kubernetes/manifests/etcd.yaml": pod("etcd", "--name=cp1")})
	_, err = e.Access(t.Context())
	require.ErrorContains(t, err, "listen-client-urls")
}

func TestAUnitBesideAnAPIServerCountsWhereTheAPIServerStoresInIt(t *testing.T) {
	named := func(urls string) map[string]string {
		return map[string]string{"/etc/kubernetes/manifests/kube-apiserver.yaml": pod("kube-apiserver", "--etcd-servers="+urls)}
	}
	servers := named("https://10.0.0.7:2379,https://10.0.0.8:2379")
	for name, tc := range map[string]struct {
		servers, listens string
		member           bool
	}{
		"one of those that it names":              {"https://10.0.0.7:2379,https://10.0.0.8:2379", "https://127.0.0.1:2379,https://10.0.0.8:2379", true},
		"somebody else's":                         {"https://10.0.0.7:2379,https://10.0.0.8:2379", "https://127.0.0.1:2379", false},
		"the one on every address of the host":    {"https://127.0.0.1:2379", "https://0.0.0.0:2379", true},
		"that of IPv6":                            {"https://[::1]:2379", "https://[::]:2379", true},
		"the loopback address under another name": {"http://127.0.0.1:2379", "http://localhost:2379", true},
		"a slash at the end":                      {"https://10.0.0.8:2379/", "https://10.0.0.8:2379", true},
		"another port":                            {"https://127.0.0.1:2379", "https://0.0.0.0:4001", false},
		"another host, and every address of this": {"https://10.0.0.7:2379", "https://0.0.0.0:2379", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := host(t, named(tc.servers))
			e.Unit = func(context.Context) (func(string) string, error) {
				return func(name string) string { return map[string]string{"listen-client-urls": tc.listens}[name] }, nil
			}
			a, err := e.Access(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.member, a.Member)
		})
	}
	t.Run("one that cannot be looked at hides no etcd elsewhere", func(t *testing.T) {
		e := host(t, servers)
		e.Unit = func(context.Context) (func(string) string, error) { return nil, assert.AnError }
		a, err := e.Access(t.Context())
		require.NoError(t, err)
		assert.Len(t, a.Endpoints, 2)
		e = host(t, nil)
		e.Unit = func(context.Context) (func(string) string, error) { return nil, assert.AnError }
		_, err = e.Access(t.Context())
		require.ErrorIs(t, err, assert.AnError)
	})
}
