package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Cluster is some members that know each other.
type Cluster struct {
	t       testing.TB
	ca      *authority
	program string
	flags   []string
	alike   bool
	Members []*Member
}

// Member is one of them, on a host of its own.
type Member struct {
	Name string
	// Root of its host.
	Root    string
	client  string
	peer    string
	process *process
}

// Start starts members named cp1, cp2 and so on, for as long as the test runs. The test is
// skipped where there is no etcd, unless REFIT_REQUIRE_API is set.
func Start(t testing.TB, members int, flags ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, ca: newAuthority(t), program: program(t), flags: flags}
	for range members {
		c.newMember()
	}
	for _, m := range c.Members {
		c.start(m, "new")
	}
	c.Await()
	return c
}

// StartAlike starts members that all tell clients the address of the first one, as those do that
// were told none and name the default one.
func StartAlike(t testing.TB, members int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, ca: newAuthority(t), program: program(t), alike: true}
	for range members {
		c.newMember()
	}
	for _, m := range c.Members {
		c.start(m, "new")
	}
	c.Await()
	return c
}

func (c *Cluster) newMember() *Member {
	c.t.Helper()
	m := &Member{
		Name: fmt.Sprintf("cp%d", len(c.Members)+1), Root: c.t.TempDir(),
		client: "https://" + freeAddress(c.t), peer: "https://" + freeAddress(c.t),
	}
	c.Members = append(c.Members, m)
	pki := filepath.Join(m.Root, "etc/kubernetes/pki/etcd")
	require.NoError(c.t, os.MkdirAll(pki, 0o700))
	write(c.t, filepath.Join(pki, "ca.crt"), c.ca.pem)
	for _, name := range []string{"server", "peer", "healthcheck-client"} {
		cert, key := c.ca.sign(c.t, name)
		write(c.t, filepath.Join(pki, name+".crt"), cert)
		write(c.t, filepath.Join(pki, name+".key"), key)
	}
	return m
}

// start starts a member, and leaves the manifest that it runs from.
func (c *Cluster) start(m *Member, state string) {
	c.t.Helper()
	advertised := m.client
	if c.alike {
		advertised = c.Members[0].client
	}
	var peers []string
	for _, other := range c.Members {
		peers = append(peers, other.Name+"="+other.peer)
	}
	flags := append([]string{
		"--name=" + m.Name, "--data-dir=/var/lib/etcd",
		"--listen-client-urls=" + m.client, "--advertise-client-urls=" + advertised,
		"--listen-peer-urls=" + m.peer, "--initial-advertise-peer-urls=" + m.peer,
		"--initial-cluster=" + strings.Join(peers, ","), "--initial-cluster-state=" + state,
		"--cert-file=/etc/kubernetes/pki/etcd/server.crt", "--key-file=/etc/kubernetes/pki/etcd/server.key",
		"--trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt", "--client-cert-auth=true",
		"--peer-cert-file=/etc/kubernetes/pki/etcd/peer.crt", "--peer-key-file=/etc/kubernetes/pki/etcd/peer.key",
		"--peer-trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt", "--peer-client-cert-auth=true",
	}, c.flags...)
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system}\nspec:\n  containers:\n  - name: etcd\n    image: registry.k8s.io/etcd:3.6.8-0\n    command:\n    - etcd\n    - " + strings.Join(flags, "\n    - ") + "\n"
	require.NoError(c.t, os.MkdirAll(filepath.Join(m.Root, "etc/kubernetes/manifests"), 0o700))
	write(c.t, filepath.Join(m.Root, "etc/kubernetes/manifests/etcd.yaml"), []byte(manifest))
	for i, flag := range flags {
		if name, path, ok := strings.Cut(flag, "=/"); ok {
			flags[i] = name + "=" + filepath.Join(m.Root, path)
		}
	}
	m.process = startProcess(c.t, filepath.Join(m.Root, "etcd.log"), c.program, append(flags, "--unsafe-no-fsync", "--heartbeat-interval=50", "--election-timeout=500")...)
}

// Await waits until every member answers a read that takes a quorum.
func (c *Cluster) Await() {
	c.t.Helper()
	for _, m := range c.Members {
		client := c.Client(m)
		require.Eventually(c.t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := client.Get(ctx, "any")
			return err == nil
		}, time.Minute, 50*time.Millisecond, "%s has to answer", m.Name)
	}
}

// Client of one member, with all rights.
func (c *Cluster) Client(m *Member) *clientv3.Client {
	c.t.Helper()
	cert, key := c.ca.sign(c.t, "test")
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(c.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca.pem)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{m.client}, Logger: zap.NewNop(), DialTimeout: 2 * time.Second,
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// Put writes some keys of some size.
func (c *Cluster) Put(m *Member, keys, size int) {
	c.t.Helper()
	client, value := c.Client(m), strings.Repeat("x", size)
	for i := range keys {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := client.Put(ctx, fmt.Sprintf("/registry/%d", i), value)
		cancel()
		require.NoError(c.t, err)
	}
}

// AddLearner adds a member without a vote; it runs.
func (c *Cluster) AddLearner() *Member {
	c.t.Helper()
	m := c.newMember()
	c.change(func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberAddAsLearner(ctx, []string{m.peer})
		return err
	})
	c.start(m, "existing")
	return m
}

// AddUnstarted adds a voter that does not run.
func (c *Cluster) AddUnstarted() {
	c.t.Helper()
	peer := "https://" + freeAddress(c.t)
	c.change(func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberAdd(ctx, []string{peer})
		return err
	})
}

// change changes the membership. etcd refuses that until its members have been connected for some seconds.
func (c *Cluster) change(do func(context.Context, *clientv3.Client) error) {
	c.t.Helper()
	client := c.Client(c.Members[0])
	require.Eventually(c.t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return do(ctx, client) == nil
	}, time.Minute, 200*time.Millisecond, "the members have to be changed")
}

// Leader is the member that leads, and Followers are the others.
func (c *Cluster) Leader() *Member {
	c.t.Helper()
	var leader *Member
	require.Eventually(c.t, func() bool {
		for _, m := range c.Members {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			status, err := c.Client(m).Status(ctx, m.client)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = m
			}
		}
		return leader != nil
	}, time.Minute, 50*time.Millisecond, "one of them has to lead")
	return leader
}

// Followers are those that do not lead.
func (c *Cluster) Followers() []*Member {
	leader := c.Leader()
	return slices.DeleteFunc(slices.Clone(c.Members), func(m *Member) bool { return m == leader })
}

// Kill ends a member as a power loss of its host would; Again starts it on what it has on disk.
func (c *Cluster) Kill(m *Member) { m.process.kill() }

// Again starts a member that was killed.
func (c *Cluster) Again(m *Member) {
	c.t.Helper()
	c.start(m, "existing")
}

// Freeze stops a member's clock, so to speak: its connections stand and nobody answers. Thaw ends that.
func (c *Cluster) Freeze(m *Member) { m.process.signal(c.t, freeze) }

// Thaw lets a frozen member go on.
func (c *Cluster) Thaw(m *Member) { m.process.signal(c.t, thaw) }

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // its address is what is wanted
	return l.Addr().String()
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o600))
}
