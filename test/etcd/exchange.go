package etcd

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// StartAt is Start with the etcd of a version that the fleet's cache has, such as v3.6.8.
func StartAt(t testing.TB, version string, members int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, ca: newAuthority(t), program: programAt(t, version)}
	for range members {
		c.newMember()
	}
	for _, m := range c.Members {
		c.start(m, "new")
	}
	c.Await()
	return c
}

// Exchange ends a member in good order, as its unit does, and starts the etcd of another version on its data.
func (c *Cluster) Exchange(m *Member, version string) {
	c.t.Helper()
	m.process.signal(c.t, syscall.SIGTERM)
	_ = m.process.cmd.Wait()
	before := c.program
	c.program = programAt(c.t, version)
	defer func() { c.program = before }()
	c.start(m, "existing")
}

// PID of the process of a member.
func (m *Member) PID() uint32 { return uint32(m.process.cmd.Process.Pid) }

// Endpoint at which a member serves clients.
func (m *Member) Endpoint() string { return m.client }

func programAt(t testing.TB, version string) string {
	t.Helper()
	path := filepath.Join(cache(t), version, "bin/etcd")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(envRequire) != "" {
			t.Fatalf("no etcd %s to test against: %v", version, err)
		}
		t.Skipf("no etcd %s to test against: %v", version, err)
	}
	return path
}
