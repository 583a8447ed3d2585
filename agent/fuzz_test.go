package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent"
)

func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// A configuration is what it says, or an error that names the file; what was understood
// reads back from its own spelling as itself.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("kubeconfig: /etc/kubernetes/kubelet.conf\nnamespace: refit\nmachine: worker-1\nexecutor: /usr/bin/refit-executor\n"))
	f.Add([]byte("namespace: a\nnamespace: b\n"))
	f.Add([]byte("machine: 12\n"))
	f.Add([]byte("namespace: \"\"\nkubeconfig: \"\"\n"))
	f.Add([]byte("namespace: null\n---\nmachine: x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := file(t, "agent.yaml", data)
		config, err := agent.LoadConfig(path)
		if err != nil {
			require.ErrorContains(t, err, path)
			return
		}
		text, err := yaml.Marshal(config)
		require.NoError(t, err)
		again, err := agent.LoadConfig(file(t, "again.yaml", text))
		require.NoError(t, err)
		require.Equal(t, config, again)
		require.NotEmpty(t, config.Namespace, "an empty field stands for its default")
		require.NotEmpty(t, config.Kubeconfig)
	})
}

// Whatever the file holds, it is a veto, and its message fits on a Machine.
func FuzzHoldFile(f *testing.F) {
	f.Add([]byte("disk swap until Friday\n"))
	f.Add([]byte(strings.Repeat("ä", 300)))
	f.Add([]byte{0xff, 0x00, 0xc3})
	f.Fuzz(func(t *testing.T, data []byte) {
		hold := agent.HoldFile(file(t, "hold", data))()
		require.NotNil(t, hold)
		require.LessOrEqual(t, len(hold.Message), 256)
		require.True(t, utf8.ValidString(hold.Message), "the API takes nothing else")
	})
}
