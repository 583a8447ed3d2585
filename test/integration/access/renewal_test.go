package access

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent/credential"
	"github.com/refit-dev/refit/agent/watch"
)

// tokenFileOf is a client configuration whose token is in a file, as an agent has it.
func tokenFileOf(t *testing.T, id identity) *rest.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, credential.Write(file, id.config.BearerToken))
	config := rest.AnonymousClientConfig(server.Admin())
	config.BearerTokenFile = file
	return config
}

func (id identity) reads(t *testing.T, token, machine string) error {
	t.Helper()
	config := rest.AnonymousClientConfig(server.Admin())
	config.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, credential.Write(config.BearerTokenFile, token))
	client, err := watch.NewClient(config, namespace, machine)
	require.NoError(t, err)
	_, err = client.Get(t.Context())
	return err
}

// An agent asks with the very code that it runs with.
func agentsRenewTheirTokens(t *testing.T, all []identity) {
	token := byName(all, "token")
	config := tokenFileOf(t, token)
	own, err := credential.NewRequester(config, namespace, "w1", "", 14*24*time.Hour)
	require.NoError(t, err)
	renewed, err := own.Request(t.Context())
	require.NoError(t, err)
	claims, err := credential.Parse(renewed)
	require.NoError(t, err)
	assert.Equal(t, "w1", claims.Machine())
	assert.Equal(t, namespace, claims.Namespace)
	assert.InDelta(t, 14*24, claims.Expires.Sub(claims.IssuedAt).Hours(), 1)
	require.NoError(t, token.reads(t, renewed, "w1"))

	other, err := credential.NewRequester(config, namespace, "w2", "", time.Hour)
	require.NoError(t, err)
	_, err = other.Request(t.Context())
	require.Equal(t, byRole, verdict(err), "%v", err)
	for part := range strings.SplitSeq(token.config.BearerToken, ".") {
		assert.NotContains(t, err.Error(), part)
	}

	pod := byName(all, "pod")
	podConfig := tokenFileOf(t, pod)
	host, err := credential.NewRequester(podConfig, namespace, "w1", "w1", time.Hour)
	require.NoError(t, err)
	bound, err := host.Request(t.Context())
	require.NoError(t, err)
	require.NoError(t, pod.reads(t, bound, "w1"))
	require.Equal(t, byRole, verdict(pod.reads(t, pod.config.BearerToken, "w1")), "the pod's own token reads nothing")

	neighbour, err := credential.NewRequester(podConfig, namespace, "w2", "w2", time.Hour)
	require.NoError(t, err)
	_, err = neighbour.Request(t.Context())
	require.ErrorContains(t, err, "only create a token of refit-machine-NODE for the Node that it runs on (w1), not of refit-machine-w2")
}

// An outage longer than a renewal takes nothing away: the token is renewed when the API server is back.
func renewalOutlastsAnOutage(t *testing.T, all []identity) {
	config := tokenFileOf(t, byName(all, "token"))
	before, err := os.ReadFile(config.BearerTokenFile)
	require.NoError(t, err)
	source, err := credential.NewRequester(config, namespace, "w1", "", time.Hour)
	require.NoError(t, err)
	require.NoError(t, server.StopAPI())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	failures := 0
	renewer := &credential.Renewer{
		File: config.BearerTokenFile, Source: source, OwnToken: true,
		Now: func() time.Time { return time.Now().Add(50 * time.Minute) }, // of 60: it is due
		Sleep: func(context.Context, time.Duration) {
			if failures++; failures == 3 {
				require.NoError(t, server.StartAPI(t.Context()))
			}
			if now, err := os.ReadFile(config.BearerTokenFile); err == nil && string(now) != string(before) || failures > 10 {
				stop()
			}
		},
	}
	renewer.Run(ctx)
	after, err := os.ReadFile(config.BearerTokenFile)
	require.NoError(t, err)
	assert.NotEqual(t, string(before), string(after))
	assert.GreaterOrEqual(t, failures, 3)
	require.NoError(t, byName(all, "token").reads(t, string(after), "w1"))
}
