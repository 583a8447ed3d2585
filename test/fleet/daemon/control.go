package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/test/fleet/state"
)

// maxSocketPath is what fits into the kernel's address of a unix socket.
const maxSocketPath = 107

func socketPath(name string) string { return filepath.Join(state.Dir(name), "daemon.sock") }

func listenControl(name string) (net.Listener, error) {
	path := socketPath(name)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the daemon's socket %s is longer than %d bytes: use a shorter state directory", path, maxSocketPath)
	}
	// We hold the pid file, so a socket that is there belongs to a daemon that is not.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of the last daemon: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on the daemon's socket: %w", err)
	}
	return l, nil
}

// control is what the fleet program may ask; life is the daemon's own, not the request's.
func (d *Daemon) control(life context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) {
		if err := d.reload(r.Context(), life); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

// Reload tells the daemon of the named fleet to serve what is recorded now, and waits until it does.
func Reload(ctx context.Context, name string) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socketPath(name))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon/reload", nil)
	if err != nil {
		return fmt.Errorf("asking the daemon to reload: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("asking the daemon to reload: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body) // the status alone says that it failed
		return fmt.Errorf("asking the daemon to reload: %s", strings.TrimSpace(string(text)))
	}
	return nil
}
