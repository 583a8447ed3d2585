package packaged

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// joining is a script that prints what `kubectl refit join-token` would, for the Machine of a namespace. The API server is away.
func joining(namespace string) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:%s:refit-machine-edge-7","iat":%d,"exp":%d}`, namespace, time.Now().Unix(), time.Now().Add(time.Hour).Unix())
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
	return fmt.Sprintf(`(cat <<EOF
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: "$(base64 -w0 /root/ca.pem)"}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
EOF
)`, token)
}

func TestAHostJoinsAManagementClusterAndLeavesIt(t *testing.T) {
	h := realHost(t)
	deb := build(t, "v0.0.1", "deb")
	require.NoError(t, h.CopyIn(t.Context(), deb, filepath.Join("/root", filepath.Base(deb)), 0o644))
	h.sh("command -v openssl >/dev/null || apt-get install -y -q openssl >/dev/null")
	h.sh("rm -f /etc/kubernetes/kubelet.conf; cd /root && apt-get install -y ./refit-agent_0.0.1-1_amd64.deb")
	h.sh(`openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout /root/key.pem -out /root/ca.pem 2>/dev/null`)

	assert.Contains(t, h.sh("refit-agent leave"), "bound to no cluster")
	assert.Contains(t, h.sh(joining("site-7")+" | refit-agent join -f -"), "This host is bound to")
	assert.Equal(t, "600 root", h.sh("stat -c '%a %U' /etc/refit/kubeconfig"))
	h.sh("systemctl enable --now refit-agent")
	h.eventually("the agent runs with it", "test -s /run/refit/agent.json && systemctl is-active refit-agent")

	out, err := h.try("refit-agent leave")
	require.Error(t, err, "an agent runs")
	assert.Contains(t, out, "systemctl stop refit-agent")
	out, err = h.try(joining("site-8") + " | refit-agent join -f -")
	require.Error(t, err, "it belongs to another namespace")
	assert.Contains(t, out, "refit-agent leave")

	h.sh("systemctl stop refit-agent")
	assert.Contains(t, h.sh("refit-agent leave"), "and is no more")
	h.sh("! test -e /etc/refit/kubeconfig")
	h.sh(joining("site-8") + " | refit-agent join -f -")
	h.sh("systemctl start refit-agent && systemctl is-active refit-agent")
	h.sh("apt-get purge -y refit-agent")
	h.sh("! test -e /etc/refit && ! test -e /var/lib/refit && ! test -e /run/refit")
}
