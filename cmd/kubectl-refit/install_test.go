package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
)

func TestAnImageThatNobodyCanPullIsRefusedBeforeAnythingIsApplied(t *testing.T) {
	for name, image := range map[string]string{
		"none":                   " ",
		"a space":                "registry.example.com/refit coordinator:v1",
		"an upper case name":     "registry.example.com/Refit:v1",
		"a tag without a name":   ":v1",
		"a name without its tag": "registry.example.com/refit-coordinator:",
		"a tag that is none":     "registry.example.com/refit-coordinator:v1+dev",
		"a digest that is cut":   "registry.example.com/refit-coordinator@sha256:abc",
		"an address":             "https://registry.example.com/refit-coordinator:v1",
		"a line break":           "registry.example.com/refit-coordinator:v1\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			root := newRoot(streams{out: &out, err: &out})
			root.SetArgs([]string{"install", "--kubeconfig", "/there/is/none", "--coordinator-image", image})
			err := root.Execute()
			require.ErrorContains(t, err, "--coordinator-image")
			assert.Equal(t, usage.ExitCode, exitCode(err))
			assert.Empty(t, out.String())
		})
	}
	for _, image := range []string{
		"refit-coordinator", "refit-coordinator:dev", "localhost:5000/refit-coordinator:v1", "refit.dev/refit-coordinator:dev",
		"registry.example.com/a/b/refit-coordinator:v1@sha256:" + strings.Repeat("a", 64),
	} {
		assert.NoError(t, checkImage("coordinator", image), image)
	}
}

func TestTheFormOfTheAgentsIsSaidInFull(t *testing.T) {
	for args, says := range map[string]string{
		"--agent pod":                                       "none of systemd and daemonset",
		"--agent daemonset":                                 "--agent-image is required",
		"--agent daemonset --agent-image a_B:":              "is no image name",
		"--agent-image refit-agent:v1":                      "is of --agent daemonset",
		"--agent systemd --agent-image refit-agent:v1":      "is of --agent daemonset",
		"--part workload --agent daemonset --agent-image a": "is for one cluster",
		"--agent daemonset --agent-image refit-agent:v1 ":   "",
	} {
		var out bytes.Buffer
		root := newRoot(streams{out: &out, err: &out})
		root.SetArgs(append(strings.Fields(args), "install", "--coordinator-image", "refit-coordinator:v1", "--dry-run"))
		err := root.Execute()
		if says == "" {
			require.NoError(t, err, args)
			for _, part := range []string{"--agent-identity=ServiceAccount", "image: refit-agent:v1", "pod-security.kubernetes.io/enforce: privileged"} {
				assert.Contains(t, out.String(), part)
			}
			continue
		}
		require.ErrorContains(t, err, says, args)
		assert.Equal(t, usage.ExitCode, exitCode(err), args)
		assert.Empty(t, out.String(), args)
	}
}

func TestAnOldAPIServerIsRefusedBeforeAnythingIsApplied(t *testing.T) {
	for version, agent := range map[string]string{"v1.29.14": "systemd", "v1.30.6": "daemonset"} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked = append(asked, r.Method+" "+r.URL.Path); r.URL.Path != "/version" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"gitVersion": %q}`, version)
		}))
		t.Cleanup(server.Close)
		config := filepath.Join(t.TempDir(), "config")
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":%q}}],"contexts":[{"name":"x","context":{"cluster":"x"}}]}`, server.URL)
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		args := []string{"install", "--kubeconfig", config, "--coordinator-image", "refit-coordinator:v1", "--agent", agent}
		if agent == "daemonset" {
			args = append(args, "--agent-image", "refit-agent:v1")
		}
		var out bytes.Buffer
		root := newRoot(streams{out: &out, err: &out})
		root.SetArgs(args)
		require.ErrorContains(t, root.Execute(), "the API server is "+version)
		assert.Contains(t, asked, "GET /version")
		for _, call := range asked {
			assert.True(t, strings.HasPrefix(call, "GET "), call)
		}
	}
}
