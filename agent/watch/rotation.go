package watch

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// rotation speaks with the client certificate that is on disk when a connection begins.
//
// client-go looks at the files every five minutes and keeps a queue that wakes the
// process every ten seconds. A host's agent sends next to nothing, so it looks when it
// is about to open a stream: the kubelet replaces its certificate long before it ends,
// and a stream ends within the hour.
type rotation struct {
	certFile, keyFile string
	transport         http.RoundTripper

	mu   sync.Mutex
	used time.Time // modification of the certificate with which connections were made
}

// httpClient is the client for a configuration, and its rotation; nil where the certificate is no file.
func httpClient(config *rest.Config) (*http.Client, *rotation, error) {
	if config.CertFile == "" || config.KeyFile == "" || len(config.CertData) > 0 || len(config.KeyData) > 0 {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
		}
		return client, nil, nil
	}
	r := &rotation{certFile: config.CertFile, keyFile: config.KeyFile}
	if _, err := r.certificate(); err != nil {
		return nil, nil, err
	}
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the TLS settings for %s: %w", config.Host, err)
	}
	settings.TLS.CertFile, settings.TLS.KeyFile = "", ""
	settings.TLS.GetCertHolder = &transport.GetCertHolder{GetCert: r.certificate}
	if r.transport, err = transport.New(settings); err != nil {
		return nil, nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &http.Client{Transport: r.transport}, r, nil
}

// certificate reads the files, once for each connection that is made.
func (r *rotation) certificate() (*tls.Certificate, error) {
	at := r.modified()
	pair, err := tls.LoadX509KeyPair(r.certFile, r.keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = at
	return &pair, nil
}

func (r *rotation) modified() time.Time {
	info, err := os.Stat(r.certFile) // through the link that the kubelet turns
	if err != nil {
		return time.Time{} // reading it will say why
	}
	return info.ModTime()
}

// refresh leaves connections that were made with a certificate that has been replaced.
func (r *rotation) refresh() {
	if r == nil {
		return
	}
	r.mu.Lock()
	replaced := !r.used.Equal(r.modified())
	r.mu.Unlock()
	if replaced {
		utilnet.CloseIdleConnectionsFor(r.transport)
	}
}

// judge leaves the connection whose certificate the API server does not take.
func (r *rotation) judge(err error) {
	if r != nil && apierrors.IsUnauthorized(err) {
		utilnet.CloseIdleConnectionsFor(r.transport)
	}
}
