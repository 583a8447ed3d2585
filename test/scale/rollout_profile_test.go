package scale

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// profiled is how long the coordinator is watched for a profile.
const profiled = 30 * time.Second

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// profile begins to write down what the coordinator uses its CPU for, where that is asked for.
// What it returns waits for the end of it.
func (w *fleetWorld) profile(t *testing.T) (wait func()) {
	t.Helper()
	file, done := os.Getenv("REFIT_SCALE_PROFILE"), make(chan struct{})
	if file == "" {
		return func() {}
	}
	go func() {
		defer close(done)
		assert.NoError(t, fetchProfile(w.profiles, file))
	}()
	return func() { <-done }
}

func fetchProfile(address, file string) error {
	client := http.Client{Timeout: profiled + time.Minute}
	answer, err := client.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", address, profiled.Seconds()))
	if err != nil {
		return fmt.Errorf("asking the coordinator for a profile: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("reading the coordinator's profile: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the coordinator for a profile: %s", answer.Status)
	}
	return os.WriteFile(file, text, 0o600)
}
