package watch

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const nodeUserPrefix = "system:node:"

// ErrNoKubeconfig says that the host has no kubeconfig (yet): it has not joined a cluster.
var ErrNoKubeconfig = errors.New("no kubeconfig")

// LoadConfig reads a kubeconfig such as the kubelet's. Certificates that it names by
// file stay files, so that a rotation is noticed.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	if _, err := os.Stat(kubeconfig); err != nil {
		return nil, fmt.Errorf("%w: %w: join the host to its cluster first, or set kubeconfig in the agent's configuration", ErrNoKubeconfig, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// NodeName is the node that the client certificate of a configuration speaks for.
func NodeName(config *rest.Config) (string, error) {
	text := config.CertData
	if len(text) == 0 {
		var err error
		if text, err = os.ReadFile(config.CertFile); err != nil {
			return "", fmt.Errorf("reading the client certificate: %w", err)
		}
	}
	user, err := commonName(text)
	if err != nil {
		return "", fmt.Errorf("reading the client certificate %s: %w", config.CertFile, err)
	}
	name, ok := strings.CutPrefix(user, nodeUserPrefix)
	if !ok || name == "" {
		return "", fmt.Errorf("the client certificate speaks for %q, which is no node: set machine in the agent's configuration", user)
	}
	return name, nil
}

func commonName(text []byte) (string, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("parsing it: %w", err)
		}
		return cert.Subject.CommonName, nil
	}
	return "", errors.New("it has no certificate")
}
