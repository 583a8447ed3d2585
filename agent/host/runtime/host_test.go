package runtime

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Runs against the real daemon of a test host, with the sandbox image imported.
func TestHostRuntimeStartsARealSandbox(t *testing.T) {
	if os.Getenv("REFIT_HOST_TESTS") != "1" {
		t.Skip("needs a host with a container runtime that may be disturbed: set REFIT_HOST_TESTS=1 there")
	}
	endpoint, err := Detect("/")
	require.NoError(t, err)
	require.NotEmpty(t, endpoint)
	r := New(endpoint)
	defer r.Close() //nolint:errcheck // a test
	require.NoError(t, r.WaitReady(t.Context(), time.Minute))
	name, version, err := r.Version(t.Context())
	require.NoError(t, err)
	t.Logf("runtime %s %s", name, version)
	info, err := r.Info(t.Context())
	require.NoError(t, err)
	t.Logf("%+v", info)
	assert.NotEmpty(t, info.CgroupDriver)
	if info.SandboxImage != "" { // containerd 2 does not say
		require.NoError(t, r.Pull(t.Context(), info.SandboxImage))
	}

	before, err := r.Sandboxes(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.ProbeSandbox(t.Context()))
	after, err := r.Sandboxes(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, before, after)

	n, err := r.StopSandboxes(t.Context())
	require.NoError(t, err)
	assert.Equal(t, len(before), n)
}
