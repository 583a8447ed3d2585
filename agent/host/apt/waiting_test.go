package apt

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/waiting"
)

// B13: a lock that is taken between the preflight and a transaction is waited for, and its holder named.
func TestWhoWaitsForTheLockTellsForWhom(t *testing.T) {
	h := newHost(t)
	h.installed(deb{name: "kubelet", version: "1"})
	h.LockTimeout = time.Minute
	_, release := holdLock(t, h.path("var/lib/dpkg/lock-frontend"))
	var told []string
	once := sync.OnceFunc(func() { go release() })
	ctx := waiting.NewContext(t.Context(), func(what string) {
		told = append(told, what)
		once()
	})
	require.NoError(t, h.SetHold(ctx, []string{"kubelet"}, true))
	require.GreaterOrEqual(t, len(told), 2)
	assert.Contains(t, told[0], "(apt.test), which holds "+h.path("var/lib/dpkg/lock-frontend"))
	assert.Empty(t, told[len(told)-1], "and that it is over")
}
