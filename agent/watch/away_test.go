package watch_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent/watch"
)

func TestAnAgentSaysInPlainWordsThatTheAPIServerIsAwayAndWhatGoesOn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	client, err := watch.NewClient(&rest.Config{Host: "https://" + address}, "refit", "w1")
	require.NoError(t, err)
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), log))
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&watch.Watcher{Client: client, Spread: 10 * time.Millisecond}).Run(ctx, make(chan watch.Event))
	}()
	require.Eventually(t, func() bool { return said() != "" }, 10*time.Second, time.Millisecond)
	cancel()
	<-done
	assert.Contains(t, said(), "what this host has accepted goes on")
	assert.Contains(t, said(), "the API server at "+address+" refuses connections")
	assert.NotContains(t, said(), "dial tcp")
}
