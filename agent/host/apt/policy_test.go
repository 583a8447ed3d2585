package apt

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
)

func TestAPolicyLeftBehindDoesNoHarm(t *testing.T) {
	h := newHost(t)
	_, _, err := h.noRestarts(nil) // and the power fails here
	require.NoError(t, err)
	ask := func(env ...string) int {
		result, _ := command.Exec{}.Run(t.Context(), command.Command{Argv: []string{h.path(policyPath), "kubelet", "restart"}, Env: env})
		return result.ExitCode
	}
	assert.Equal(t, 0, ask(), "another package manager run may restart services")
	assert.Equal(t, 101, ask(policyVar+"=1"))

	_, restore, err := h.noRestarts(nil) // the next transaction
	require.NoError(t, err)
	require.NoError(t, restore())
	assert.NoFileExists(t, h.path(policyPath))
}

func TestTheHostsOwnPolicySurvivesACrashAtAnyMoment(t *testing.T) {
	const own = "#!/bin/sh\nexit 104\n"
	for name, crash := range map[string]func(h *host){
		"before anything":              func(*host) {},
		"after the link":               func(h *host) { _ = os.Link(h.path(policyPath), h.path(policySave)) },
		"after ours was written":       func(h *host) { _ = h.installPolicy() },
		"after a transaction and more": func(h *host) { _, _, _ = h.noRestarts(nil); _, _, _ = h.noRestarts(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			require.NoError(t, os.WriteFile(h.path(policyPath), []byte(own), 0o755))
			crash(h)
			_, restore, err := h.noRestarts(nil)
			require.NoError(t, err)
			require.NoError(t, restore())
			assert.Equal(t, own, h.read(policyPath))
			assert.NoFileExists(t, h.path(policySave))
		})
	}
}
