package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/state"
)

// APIPort is the port of the API endpoint and of every API server.
const APIPort = "6443"

// Daemon serves one fleet.
type Daemon struct {
	name      string
	forwarder *Forwarder
	mirror    *mirror

	// reloading guards pushed: one reload at a time, so that a late one never undoes a newer one.
	reloading sync.Mutex
	pushed    map[string]string // image: the file it came from
}

// Serve runs the daemon of the named fleet until the context ends. A second one for the same fleet fails.
func Serve(ctx context.Context, name string) error {
	f, err := state.Load(name)
	if err != nil {
		return err
	}
	release, err := holdPidFile(name)
	if err != nil {
		return err
	}
	defer release()
	if err := hosts.EnterCgroup(f.Site().DaemonCgroup()); err != nil {
		return err
	}
	blobs, err := blobHandler(f.BlobDir)
	if err != nil {
		return err
	}
	requests, err := openRequestLog(name)
	if err != nil {
		return err
	}
	d := &Daemon{name: name, forwarder: NewForwarder(), mirror: &mirror{}, pushed: map[string]string{}}
	web := http.NewServeMux()
	web.Handle("/v2/", requests.service("registry", registry.New(registry.WithBlobHandler(blobs), registry.Logger(log.New(io.Discard, "", 0)))))
	web.Handle("/", requests.service("apt", d.mirror))
	return d.listen(ctx, f, web)
}

func (d *Daemon) listen(ctx context.Context, f *state.Fleet, web http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gateway := f.Site().Gateway().String()
	webL, err := net.Listen("tcp", net.JoinHostPort(gateway, "80"))
	if err != nil {
		return fmt.Errorf("serving mirror and registry: %w", err)
	}
	apiL, err := net.Listen("tcp", net.JoinHostPort(gateway, APIPort))
	if err != nil {
		return errors.Join(fmt.Errorf("serving the API endpoint: %w", err), webL.Close())
	}
	controlL, err := listenControl(f.Name)
	if err != nil {
		return errors.Join(err, webL.Close(), apiL.Close())
	}
	ended := make(chan error, 3)
	go func() { ended <- serveHTTP(ctx, webL, web) }()
	go func() { ended <- d.forwarder.Serve(ctx, apiL) }()
	go func() { ended <- serveHTTP(ctx, controlL, d.control(ctx)) }()
	log.Printf("serving fleet %s on %s", f.Name, gateway)
	err = <-ended
	cancel()
	return errors.Join(err, <-ended, <-ended)
}

func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", l.Addr(), err)
	}
	return nil
}

// reload brings what is served in line with the recorded fleet.
func (d *Daemon) reload(ctx, life context.Context) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	f, err := state.Load(d.name)
	if err != nil {
		return err
	}
	d.mirror.serve(f.AptDir)
	var servers []string
	for _, h := range f.Hosts {
		if h.ControlPlane {
			servers = append(servers, net.JoinHostPort(f.Machine(h).Address().String(), APIPort))
		}
	}
	d.forwarder.SetBackends(life, servers)
	return d.pushImages(ctx, f.Site().Gateway().String(), f.Images)
}

// mirror serves the apt repositories; which directory that is can change while it serves.
type mirror struct {
	mu  sync.RWMutex
	dir string
}

func (m *mirror) serve(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dir = dir
}

// ServeHTTP answers with a file of the repositories.
func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.RLock()
	dir := m.dir
	m.mu.RUnlock()
	if dir == "" || strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
}

func blobHandler(dir string) (registry.BlobHandler, error) {
	if dir == "" {
		return nil, errors.New("the fleet's record names no directory for image layers: bring it up again with: fleet up")
	}
	if err := os.MkdirAll(filepath.Clean(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of image layers: %w", err)
	}
	return registry.NewDiskBlobHandler(dir), nil
}
