package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// askTimeout bounds one question to one member: what stands still must not hold up the rest.
const askTimeout = 4 * time.Second

// Dir keeps the snapshots: beside the backup of packages, and never where the kubelet looks for manifests.
const Dir = "/var/lib/refit/etcd"

// Etcd is the etcd of the host under Root.
type Etcd struct {
	Root string
	// Unit are the flags of an etcd that runs as a unit of this host; nil where none does. See package etcdunit.
	Unit func(ctx context.Context) (flag func(name string) string, err error)
	// Timeout of one question.
	Timeout time.Duration
	// Now is the clock of snapshots.
	Now func() time.Time
}

// New returns the etcd of the host under root.
func New(root string) *Etcd {
	return &Etcd{Root: root, Timeout: askTimeout, Now: time.Now}
}

// ErrNone says that this host has no etcd to ask.
var ErrNone = errors.New("this host runs no etcd, and no API server that names one")

func (e *Etcd) connect(a *Access, endpoints ...string) (*clientv3.Client, error) {
	config, err := e.tls(a)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: config, DialTimeout: e.Timeout, Logger: zap.NewNop(), RejectOldCluster: false,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %v: %w", endpoints, err)
	}
	return client, nil
}

func (e *Etcd) tls(a *Access) (*tls.Config, error) {
	if a.CA == "" && a.Cert == "" {
		return nil, nil // an etcd without TLS
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		ca, err := os.ReadFile(e.path(a.CA))
		if err != nil {
			return nil, fmt.Errorf("reading the CA of etcd: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("reading the CA of etcd: no certificate in %s", a.CA)
		}
	}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(e.path(a.Cert), e.path(a.Key))
		if err != nil {
			return nil, fmt.Errorf("loading the host's certificate for etcd: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// read asks for a key that need not be there: the answer takes a quorum. A refusal for want of
// permission has taken one, too.
func (e *Etcd) read(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	_, err := client.Get(ctx, "health")
	if err == nil || errors.Is(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	return fmt.Errorf("reading with a quorum: %w", err)
}
