// Command app is a small HTTP server that behaves well when its pod is evicted: told to stop, it says it is not ready,
// goes on serving for a grace time, then exits.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// version is set when the image is built.
var version = "unknown"

func main() {
	listen := flag.String("listen", ":8080", "address to serve on")
	grace := flag.Duration("grace", 5*time.Second, "how long to go on serving, not ready, after SIGTERM")
	flag.Parse()
	if err := run(*listen, *grace); err != nil {
		log.Fatal(err)
	}
}

func run(listen string, grace time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var stopping atomic.Bool
	server := &http.Server{Addr: listen, Handler: handler(&stopping), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stopping.Store(true)
	time.Sleep(grace)
	return server.Close()
}

func handler(stopping *atomic.Bool) http.Handler {
	hostname, _ := os.Hostname()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s\n", hostname, version)
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}
