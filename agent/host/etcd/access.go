package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/controlplane"
)

// Access is how this host reaches its etcd.
type Access struct {
	// Endpoints to begin with: that of the member on this host alone, or those of an etcd elsewhere.
	Endpoints []string
	// Member says that a member runs on this host.
	Member bool
	// CA, Cert and Key are files under the root of the host; "" for an etcd without TLS.
	CA, Cert, Key string
}

// pairs are the certificates that a host with a member may have for asking it, the one made for
// that first. One for Refit is there where the host's owner has put it: the certificate of a
// server may not be good for a client.
var pairs = []string{"/etc/refit/etcd-client", "/etc/kubernetes/pki/etcd/healthcheck-client", "/etc/kubernetes/pki/apiserver-etcd-client"}

// Access is found in what the host runs: a static pod of etcd, a unit of etcd, or an API
// server that names an etcd elsewhere. Nil says that this host has no etcd to ask.
func (e *Etcd) Access(ctx context.Context) (*Access, error) {
	control := controlplane.New(e.Root)
	if flag, there, err := control.Flags("etcd"); there || err != nil {
		if err != nil {
			return nil, fmt.Errorf("looking where etcd listens: %w", err)
		}
		return e.member(flag)
	}
	flag, there, err := control.Flags("kube-apiserver")
	if err != nil {
		return nil, fmt.Errorf("looking for the etcd of the API server: %w", err)
	}
	elsewhere := there && flag("etcd-servers") != ""
	unit, err := e.unit(ctx)
	switch {
	case err != nil && !elsewhere:
		return nil, fmt.Errorf("looking where etcd listens: %w", err)
	case unit != nil && (!elsewhere || serves(unit, words(flag("etcd-servers")))):
		return e.member(unit)
	case !elsewhere:
		return nil, nil // nothing here stores in an etcd, and that is known
	}
	return &Access{
		Endpoints: words(flag("etcd-servers")),
		CA:        flag("etcd-cafile"), Cert: flag("etcd-certfile"), Key: flag("etcd-keyfile"),
	}, nil
}

func (e *Etcd) unit(ctx context.Context) (func(string) string, error) {
	if e.Unit == nil {
		return nil, nil
	}
	return e.Unit(ctx)
}

// serves says that the member is one of those that the API server of its host stores in, and
// not somebody else's that happens to be there.
func serves(unit func(string) string, servers []string) bool {
	listens := append(words(unit("advertise-client-urls")), words(unit("listen-client-urls"))...)
	return slices.ContainsFunc(servers, func(server string) bool {
		return slices.ContainsFunc(listens, func(own string) bool { return reaches(server, own) })
	})
}

// reaches says that who connects to one address comes to a listener on another: they are the
// same, whatever the loopback address is called, or all addresses of the host are listened on.
func reaches(server, listener string) bool {
	to, err := url.Parse(server)
	if err != nil {
		return false
	}
	at, err := url.Parse(listener)
	if err != nil || to.Scheme != at.Scheme || to.Port() != at.Port() {
		return false
	}
	return strings.EqualFold(to.Hostname(), at.Hostname()) || loopback(to.Hostname()) && (loopback(at.Hostname()) || everywhere(at.Hostname()))
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// member is the way to a member that runs here, by its own flags.
func (e *Etcd) member(flag func(string) string) (*Access, error) {
	listen := words(flag("listen-client-urls"))
	if len(listen) == 0 {
		listen = words(flag("advertise-client-urls"))
	}
	if len(listen) == 0 {
		return nil, errors.New("the etcd of this host names no address for clients (listen-client-urls)")
	}
	own, err := reachable(listen[0])
	if err != nil {
		return nil, err
	}
	a := &Access{Endpoints: []string{own}, Member: true}
	if !slices.ContainsFunc(append(listen, words(flag("advertise-client-urls"))...), secure) {
		return a, nil // neither it nor, by the same setup, the others
	}
	a.CA, a.Cert, a.Key = flag("trusted-ca-file"), flag("cert-file"), flag("key-file")
	for _, pair := range pairs {
		if e.exists(pair+".crt") && e.exists(pair+".key") {
			a.Cert, a.Key = pair+".crt", pair+".key"
			break
		}
	}
	return a, nil
}

func secure(url string) bool { return strings.HasPrefix(url, "https:") }

// reachable is an address that one can connect to: a member may listen on all of its host's.
func reachable(listen string) (string, error) {
	at, err := url.Parse(listen)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("the address for clients of the etcd of this host, %q, cannot be read", listen)
	}
	switch at.Hostname() {
	case "0.0.0.0":
		at.Host = "127.0.0.1:" + at.Port()
	case "::":
		at.Host = "[::1]:" + at.Port()
	}
	return at.Scheme + "://" + at.Host, nil
}

func words(list string) []string {
	var out []string
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

func (e *Etcd) path(p string) string { return filepath.Join(e.Root, p) }

func (e *Etcd) exists(p string) bool {
	_, err := os.Stat(e.path(p))
	return !errors.Is(err, fs.ErrNotExist)
}
