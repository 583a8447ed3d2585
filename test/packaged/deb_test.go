package packaged

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A kubeconfig as the kubelet has one, of an API server that is away.
const member = `mkdir -p /etc/kubernetes
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/O=system:nodes/CN=system:node:$(hostname)" -keyout /etc/kubernetes/key.pem -out /etc/kubernetes/cert.pem 2>/dev/null
cat >/etc/kubernetes/kubelet.conf <<EOF
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {client-certificate: /etc/kubernetes/cert.pem, client-key: /etc/kubernetes/key.pem}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
EOF`

// A process that stands for an executor at work.
const atWork = "systemd-run --quiet --unit=refit-op-test.service sleep infinity"

func TestADebIsInstalledUpgradedAndRemovedWithoutResidue(t *testing.T) {
	h := realHost(t)
	ctx := t.Context()
	for _, version := range []string{"v0.0.1", "v0.0.2"} {
		deb := build(t, version, "deb")
		require.NoError(t, h.CopyIn(ctx, deb, filepath.Join("/root", filepath.Base(deb)), 0o644))
	}
	const (
		files    = `find / -xdev \( -path /proc -o -path /root -o -path /var/log -o -path /sys \) -prune -o -name '*refit*' -print; ls -d /run/refit /run/systemd/transient/*refit* 2>/dev/null || true`
		one, two = "cd /root && apt-get install -y ./refit-agent_0.0.1-1_amd64.deb", "cd /root && apt-get install -y ./refit-agent_0.0.2-1_amd64.deb"
		pid      = "systemctl show -P MainPID refit-agent.service"
	)
	before := h.sh(files)

	out := h.sh(one)
	assert.Contains(t, out, "the agent is not started", "the host belongs to no cluster")
	assert.Equal(t, "enabled", h.sh("systemctl is-enabled refit-resume.service"))
	state, _ := h.try("systemctl is-active refit-agent.service")
	assert.Equal(t, "inactive", state)
	assert.Contains(t, h.sh("refit-executor facts"), `"packages"`)
	assert.Contains(t, h.sh("refit-agent version"), "v0.0.1")
	h.sh("systemd-analyze verify /usr/lib/systemd/system/refit-agent.service /usr/lib/systemd/system/refit-resume.service")

	h.sh("command -v openssl >/dev/null || apt-get install -y -q openssl >/dev/null")
	h.sh(member)
	h.sh("systemctl enable --now refit-agent")
	h.eventually("the agent says which program it is", `grep -q "$(sha256sum /usr/bin/refit-agent | cut -d' ' -f1)" /run/refit/agent.json`)
	h.sh("echo '# mine' >>/etc/refit/agent.yaml; mkdir -p -m 0755 /etc/refit/hooks.d")

	// An upgrade restarts the agent and no operation, and keeps what the owner has changed.
	h.sh(atWork)
	agent, operation := h.sh(pid), h.sh("systemctl show -P MainPID refit-op-test.service")
	h.sh(two)
	assert.NotEqual(t, agent, h.sh(pid))
	assert.Equal(t, "active", h.sh("systemctl is-active refit-agent.service"))
	assert.Equal(t, operation, h.sh("systemctl show -P MainPID refit-op-test.service"))
	assert.Contains(t, h.sh("cat /etc/refit/agent.yaml"), "# mine")
	h.eventually("the new agent runs", `grep -q '"version":"v0.0.2"' /run/refit/agent.json`)

	// No removal under an operation, whether it runs or waits for a boot.
	out, err := h.try("apt-get remove -y refit-agent")
	require.Error(t, err, "an operation runs")
	assert.Contains(t, out, "an operation on this host has no outcome yet")
	h.sh("systemctl stop refit-op-test.service; mkdir -p /var/lib/refit/open; touch /var/lib/refit/open/op-7")
	out, err = h.try("apt-get remove -y refit-agent")
	require.Error(t, err, "an operation is open")
	assert.Contains(t, out, "op-7")
	assert.Equal(t, "active", h.sh("systemctl is-active refit-agent.service"))
	assert.Equal(t, "install ok installed", h.sh("dpkg-query -W -f '${Status}' refit-agent"))
	h.sh("rm /var/lib/refit/open/op-7")

	out = h.sh("apt-get remove -y refit-agent")
	assert.Contains(t, out, "/var/lib/refit stays")
	state, _ = h.try("systemctl is-active refit-agent.service")
	assert.Equal(t, "inactive", state)
	h.sh("test -d /var/lib/refit && ! test -e /usr/bin/refit-agent && grep -q mine /etc/refit/agent.yaml")

	// What was removed may come back, as it was.
	h.sh(one)
	h.sh("systemctl is-enabled refit-resume.service refit-agent.service && systemctl is-active refit-agent.service")
	h.sh("rmdir /etc/refit/hooks.d; apt-get purge -y refit-agent")
	h.sh("systemctl daemon-reload; systemctl reset-failed")
	assert.Equal(t, before, h.sh(files), "nothing of Refit is left")
	assert.Empty(t, h.sh("systemctl list-unit-files --no-pager --no-legend 'refit*' || true"))
}
