package apiserver

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin is a client configuration that may do everything.
func (s *Server) Admin() *rest.Config { return rest.CopyConfig(s.admin) }

// As is a client configuration with a fresh certificate for the user and groups, such as system:node:w1 and system:nodes.
func (s *Server) As(t testing.TB, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := s.config(user, groups...)
	if err != nil {
		t.Fatalf("making a client configuration for %s: %v", user, err)
	}
	return config
}

// ClientCert is a fresh certificate for the user and groups.
func (s *Server) ClientCert(user string, groups ...string) (KeyPair, error) {
	return s.ca.client(user, groups)
}

// WriteKubeconfig writes DIR/kubelet.conf as kubeadm lays it out: the certificate and
// its key are in one PEM file, kubelet-client-current.pem, that is replaced when it rotates.
func (s *Server) WriteKubeconfig(t testing.TB, dir, user string, groups ...string) (kubeconfig string) {
	t.Helper()
	pemFile := s.WriteClientPEM(t, dir, user, groups...)
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: s.URL(), CertificateAuthorityData: s.ca.pem}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificate: pemFile, ClientKey: pemFile}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	path := filepath.Join(dir, "kubelet.conf")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
	return path
}

// WriteClientPEM writes DIR/kubelet-client-current.pem with a fresh certificate, as a rotation does.
func (s *Server) WriteClientPEM(t testing.TB, dir, user string, groups ...string) string {
	t.Helper()
	pair, err := s.ca.client(user, groups)
	if err != nil {
		t.Fatalf("signing a certificate for %s: %v", user, err)
	}
	path, err := writeFile(dir, "kubelet-client-current.pem", append(pair.Cert, pair.Key...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *Server) config(user string, groups ...string) (*rest.Config, error) {
	pair, err := s.ca.client(user, groups)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %s: %w", user, err)
	}
	return &rest.Config{
		Host: s.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: s.ca.pem, CertData: pair.Cert, KeyData: pair.Key,
		},
		QPS: -1,
	}, nil
}
