package binding

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"encoding/pem"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/watch"
)

func TestAHostKnowsItsClusterByItsAddressOrByItsAuthority(t *testing.T) {
	home := Place{Server: "https://a:6443", Authorities: []string{"1", "2"}, Namespace: "refit", Machine: "w1"}
	for name, tc := range map[string]struct {
		other Place
		same  bool
	}{
		"the same":                           {home, true},
		"another address":                    {Place{"https://b:6443", []string{"2", "3"}, "refit", "w1"}, true},
		"another authority":                  {Place{"https://a:6443", []string{"4"}, "refit", "w1"}, true},
		"another address and authority":      {Place{"https://b:6443", []string{"4"}, "refit", "w1"}, false},
		"another address without authority":  {Place{"https://b:6443", nil, "refit", "w1"}, false},
		"another namespace":                  {Place{"https://a:6443", []string{"1"}, "site-7", "w1"}, false},
		"the Machine of another host":        {Place{"https://a:6443", []string{"1"}, "refit", "w2"}, false},
		"nothing but the name of the host's": {Place{Machine: "w1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, Check(dir, tc.other), "a host that is bound to nothing")
			require.NoError(t, Bind(dir, home))
			assert.Equal(t, tc.same, home.Same(tc.other))
			err := Bind(dir, tc.other)
			if tc.same {
				require.NoError(t, err)
				return
			}
			var other *OtherError
			require.ErrorAs(t, err, &other)
			assert.ErrorContains(t, err, "refit-agent leave")
			bound, err := Read(dir)
			require.NoError(t, err)
			assert.Equal(t, home, *bound, "a refusal changes nothing")
		})
	}
}

// An authority is replaced with both the old and the new one in force for a while; the
// next replacement finds the host at the new one.
func TestAHostFollowsTheAuthoritiesOfItsCluster(t *testing.T) {
	dir := t.TempDir()
	at := func(server string, authorities ...string) Place { return Place{server, authorities, "refit", "w1"} }
	require.NoError(t, Bind(dir, at("https://a", "1")))
	require.NoError(t, Bind(dir, at("https://a", "1", "2")))
	require.NoError(t, Bind(dir, at("https://a", "2")))
	require.NoError(t, Bind(dir, at("https://b", "2")))
	require.Error(t, Bind(dir, at("https://a", "1")))
}

func TestADamagedBindingBinds(t *testing.T) {
	for _, text := range []string{"", "{", "{}", `{"server":"https://a"}`} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(file(dir), []byte(text), 0o600))
		assert.ErrorContains(t, Bind(dir, Place{Server: "https://a", Namespace: "refit", Machine: "w1"}), "refit-agent leave", text)
	}
}

func token(account string) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:%s","iat":%d,"exp":%d}`, account, time.Now().Unix(), time.Now().Add(time.Hour).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// joinFile is what kubectl refit join-token prints, for a server.
func joinFile(t *testing.T, server *httptest.Server, edit func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	cluster := &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	user := &clientcmdapi.AuthInfo{Token: token("site-7:refit-machine-h1")}
	edit(cluster, user)
	config.Clusters["refit"], config.AuthInfos["refit"] = cluster, user
	config.Contexts["refit"] = &clientcmdapi.Context{Cluster: "refit", AuthInfo: "refit"}
	config.CurrentContext = "refit"
	text, err := clientcmd.Write(*config)
	require.NoError(t, err)
	return text
}

func host(t *testing.T) Host {
	root := t.TempDir()
	h := Host{Config: filepath.Join(root, "etc/refit/agent.yaml"), Etc: filepath.Join(root, "etc/refit"), State: filepath.Join(root, "var/lib/refit")}
	require.NoError(t, os.MkdirAll(h.Etc, 0o755))
	require.NoError(t, os.WriteFile(h.Config, []byte("executor: /opt/refit-executor\n"), 0o644))
	return h
}

func tlsServer(t *testing.T) *httptest.Server {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s
}

func TestAHostJoinsAndLeaves(t *testing.T) {
	h, server := host(t), tlsServer(t)
	place, err := h.Join(joinFile(t, server, func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}))
	require.NoError(t, err)
	assert.Equal(t, "Machine site-7/h1 at "+server.URL, place.String())

	config, err := agent.LoadConfig(h.Config)
	require.NoError(t, err)
	assert.Equal(t, agent.Config{Kubeconfig: h.Kubeconfig(), Namespace: "site-7", Machine: "h1", Executor: "/opt/refit-executor"}, config)
	for _, path := range []string{h.Kubeconfig(), h.TokenFile(), file(h.State)} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), path)
	}
	rest, err := watch.LoadConfig(h.Kubeconfig())
	require.NoError(t, err)
	assert.Equal(t, h.TokenFile(), rest.BearerTokenFile, "a renewed token counts at once")

	_, err = h.Join(joinFile(t, server, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = token("site-8:refit-machine-h1") }))
	var other *OtherError
	require.ErrorAs(t, err, &other)
	_, err = h.Join(joinFile(t, server, func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}))
	require.NoError(t, err, "the same again, such as with a new token")

	was, err := h.Leave()
	require.NoError(t, err)
	assert.Equal(t, place, *was)
	for _, path := range []string{h.Kubeconfig(), h.TokenFile(), file(h.State)} {
		assert.NoFileExists(t, path)
	}
	config, err = agent.LoadConfig(h.Config)
	require.NoError(t, err)
	assert.Equal(t, agent.Config{Kubeconfig: "/etc/kubernetes/kubelet.conf", Namespace: "refit", Executor: "/opt/refit-executor"}, config)
	_, err = h.Leave()
	require.NoError(t, err, "leaving twice")
}

func TestAKubeconfigThatIsNoneOfOursChangesNothing(t *testing.T) {
	server := tlsServer(t)
	for name, edit := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"an administrator's token": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = token("kube-system:admin") },
		"no token":                 func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "" },
		"a program": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		},
		"a file": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/etc/shadow" },
		"no check of the server": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
		},
		"an authority that is none": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData = []byte("hello")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			_, err := h.Join(joinFile(t, server, edit))
			require.ErrorIs(t, err, errNoJoin)
			assert.NoDirExists(t, h.State)
			assert.NoFileExists(t, h.Kubeconfig())
		})
	}
	_, err := host(t).Join([]byte("hello"))
	require.ErrorIs(t, err, errNoJoin)
}

func FuzzJoin(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: r, cluster: {server: 'https://a'}}]\nusers: [{name: r, user: {token: a.b.c}}]\ncontexts: [{name: r, context: {cluster: r, user: r}}]\ncurrent-context: r\n"))
	f.Add([]byte("{}"))
	f.Add([]byte("current-context: x\ncontexts: [{name: x}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, token, err := readJoin(text)
		if err == nil && token == "" {
			t.Fatal("a join without a token")
		}
	})
}

func FuzzBound(f *testing.F) {
	f.Add([]byte(`{"server":"https://a","namespace":"n","machine":"m","authorities":["x"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(file(dir), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Read(dir); err == nil && (p == nil || p.Machine == "") {
			t.Fatal("a binding to nothing")
		}
	})
}
