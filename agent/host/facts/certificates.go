package facts

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const kubeletKubeconfig = "etc/kubernetes/kubelet.conf"

// node is the host's identity in the cluster: the name in the certificate that the
// kubelet uses, since that is what the API server goes by.
func (g *gathering) node(context.Context) error {
	if _, err := os.Stat(g.path(kubeletKubeconfig)); errors.Is(err, fs.ErrNotExist) {
		return nil // not a node; a certificate that is missing is another matter
	}
	certificate, _, err := g.kubeconfigCertificate(kubeletKubeconfig)
	if err != nil {
		return err
	}
	name, ok := strings.CutPrefix(certificate.Subject.CommonName, "system:node:")
	if !ok {
		return fmt.Errorf("reading the kubelet's identity: the certificate of %s is for %q, want system:node:NAME", kubeletKubeconfig, certificate.Subject.CommonName)
	}
	g.facts.Node = &upgrade.NodeFacts{Name: name}
	return nil
}

// certificates looks at those that the programs really load: for a kubeconfig that
// may be one inside it, although a newer one lies on disk.
func (g *gathering) certificates(context.Context) error {
	var paths []string
	for _, pattern := range []string{"etc/kubernetes/pki/*.crt", "etc/kubernetes/pki/etcd/*.crt", "var/lib/kubelet/pki/kubelet.crt"} {
		found, err := filepath.Glob(g.path(pattern))
		if err != nil {
			return fmt.Errorf("listing certificates: %w", err)
		}
		paths = append(paths, found...)
	}
	var problems error
	for _, path := range paths {
		certificate, err := readCertificate(path)
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		g.addCertificate(strings.TrimPrefix(path, strings.TrimSuffix(g.Root, "/")), certificate)
	}
	return errors.Join(problems, g.kubeconfigCertificates())
}

func (g *gathering) kubeconfigCertificates() error {
	found, err := filepath.Glob(g.path("etc/kubernetes/*.conf"))
	if err != nil {
		return fmt.Errorf("listing kubeconfigs: %w", err)
	}
	var problems error
	for _, path := range found {
		relative := strings.TrimPrefix(strings.TrimPrefix(path, g.Root), "/")
		certificate, from, err := g.kubeconfigCertificate(relative)
		switch {
		case errors.Is(err, errNoCertificate):
		case err != nil:
			problems = errors.Join(problems, err)
		default:
			g.addCertificate(from, certificate)
		}
	}
	return problems
}

func (g *gathering) addCertificate(path string, c *x509.Certificate) {
	fact := upgrade.CertFacts{Path: path, Subject: c.Subject.CommonName, NotAfter: c.NotAfter.UTC(), ManagedBy: g.managerOf(path)}
	if !slices.Contains(g.facts.Certs, fact) {
		g.facts.Certs = append(g.facts.Certs, fact)
	}
}

// kubeadmCAs are the certificates that kubeadm certs renew renews, and the key that signs each.
var kubeadmCAs = map[string]string{
	"/etc/kubernetes/pki/apiserver.crt":                "/etc/kubernetes/pki/ca.key",
	"/etc/kubernetes/pki/apiserver-kubelet-client.crt": "/etc/kubernetes/pki/ca.key",
	"/etc/kubernetes/admin.conf":                       "/etc/kubernetes/pki/ca.key",
	"/etc/kubernetes/super-admin.conf":                 "/etc/kubernetes/pki/ca.key",
	"/etc/kubernetes/controller-manager.conf":          "/etc/kubernetes/pki/ca.key",
	"/etc/kubernetes/scheduler.conf":                   "/etc/kubernetes/pki/ca.key",
	"/etc/kubernetes/pki/front-proxy-client.crt":       "/etc/kubernetes/pki/front-proxy-ca.key",
	"/etc/kubernetes/pki/apiserver-etcd-client.crt":    "/etc/kubernetes/pki/etcd/ca.key",
	"/etc/kubernetes/pki/etcd/server.crt":              "/etc/kubernetes/pki/etcd/ca.key",
	"/etc/kubernetes/pki/etcd/peer.crt":                "/etc/kubernetes/pki/etcd/ca.key",
	"/etc/kubernetes/pki/etcd/healthcheck-client.crt":  "/etc/kubernetes/pki/etcd/ca.key",
}

// managerOf says who renews a certificate. For an etcd that runs elsewhere kubeadm renews nothing.
func (g *gathering) managerOf(path string) string {
	key, ok := kubeadmCAs[path]
	switch {
	case strings.HasPrefix(path, "/var/lib/kubelet/pki/kubelet-client"):
		return upgrade.ManagedByKubelet
	case !ok:
		return ""
	case g.exists(key):
		return upgrade.ManagedByKubeadm
	case strings.Contains(key, "/etcd/") && !g.exists("/etc/kubernetes/manifests/etcd.yaml"):
		return ""
	}
	return upgrade.ManagedByExternal
}

// exists: what may not be looked at is there.
func (g *gathering) exists(path string) bool {
	_, err := os.Stat(g.path(path))
	return !errors.Is(err, fs.ErrNotExist)
}

var errNoCertificate = errors.New("no client certificate")

// kubeconfigCertificate is the client certificate of a kubeconfig's current user and where it is.
func (g *gathering) kubeconfigCertificate(path string) (*x509.Certificate, string, error) {
	data, err := os.ReadFile(g.path(path))
	if err != nil {
		return nil, "", fmt.Errorf("reading a kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig /%s: %w", path, err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, "", fmt.Errorf("kubeconfig /%s: %w: no current context with a user", path, errNoCertificate)
	}
	user := config.AuthInfos[current.AuthInfo]
	switch {
	case len(user.ClientCertificateData) > 0:
		certificate, err := parseCertificate(user.ClientCertificateData)
		if err != nil {
			return nil, "", fmt.Errorf("reading the client certificate in /%s: %w", path, err)
		}
		return certificate, "/" + path, nil
	case user.ClientCertificate != "":
		file := user.ClientCertificate
		if !filepath.IsAbs(file) {
			file = filepath.Join("/", filepath.Dir(path), file)
		}
		certificate, err := readCertificate(g.path(file))
		return certificate, file, err
	}
	return nil, "", fmt.Errorf("kubeconfig /%s: %w", path, errNoCertificate)
}

func readCertificate(path string) (*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	certificate, err := parseCertificate(data)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s: %w", path, err)
	}
	return certificate, nil
}

// parseCertificate takes the first certificate; the file may begin with a key.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, errors.New("no certificate in it")
		}
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes) //nolint:wrapcheck // the callers name the file
		}
	}
}
