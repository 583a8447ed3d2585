package main

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
)

func TestEveryCommandSaysInPlainWordsThatTheAPIServerIsAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"status":    {[]string{"status"}, "error: listing pools and machines: the API server at " + address + " refuses connections"},
		"dashboard": {[]string{"dashboard"}, "error: listing what the page shows: the API server at " + address + " refuses connections"},
		"plan":      {[]string{"plan"}, "kubectl refit plan -f FILES --facts FACTS asks no cluster"},
		"plan live": {[]string{"plan", "-f", planData + "objects.yaml", "--live"}, "listing pools and machines: the API server at " + address},
		"adopt":     {[]string{"adopt"}, "listing the nodes: the API server at " + address},
		"apply":     {[]string{"adopt", "--apply"}, "what was created before stays: run it again"},
		"install":   {[]string{"install", "--coordinator-image", "registry.example/coordinator:v1"}, "what was applied before stays: run it again"},
		"uninstall": {[]string{"uninstall"}, "what was taken away before is gone: run it again"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			root := newRoot(streams{out: &out, err: &errs})
			root.SetArgs(append(tc.args, "--server", "https://"+address, "--kubeconfig", "/dev/null", "--cache-dir", t.TempDir()))
			cmd, err := root.ExecuteContextC(t.Context())
			require.Error(t, err)
			text := "error: " + explain(cmd.Name(), err)
			assert.Equal(t, usage.ExitFault, exitCode(err))
			assert.Contains(t, text, tc.says)
			assert.Contains(t, text, "what hosts have accepted goes on to its end, and nothing new is granted until it is back")
			for _, chain := range []string{"dial tcp", "Get \"", "failed to get", "unable to retrieve", "connect:"} {
				assert.NotContains(t, text, chain)
			}
		})
	}
}
