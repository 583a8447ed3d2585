package binding

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/credential"
	"github.com/refit-dev/refit/agent/host/files"
)

// Host is where the files of a binding are.
type Host struct {
	// Config is agent.yaml.
	Config string
	// Etc and State directories.
	Etc, State string
}

// Kubeconfig is the file that join writes.
func (h Host) Kubeconfig() string { return filepath.Join(h.Etc, "kubeconfig") }

// TokenFile holds the token of the host's ServiceAccount.
func (h Host) TokenFile() string { return filepath.Join(h.State, "credentials", "token") }

// errNoJoin says that a text is not what `kubectl refit join-token` prints.
var errNoJoin = errors.New("it is not what `kubectl refit join-token MACHINE` prints")

// Join binds the host to the place that a kubeconfig leads to, whose user is a token of
// refit-machine-NAME. Nothing is written unless all of it can be.
func (h Host) Join(kubeconfig []byte) (Place, error) {
	config, token, err := readJoin(kubeconfig)
	if err != nil {
		return Place{}, err
	}
	claims, err := credential.Parse(token)
	if err != nil {
		return Place{}, fmt.Errorf("reading the token: %w: %w", err, errNoJoin)
	}
	if claims.Machine() == "" {
		return Place{}, fmt.Errorf("the token is of ServiceAccount %s/%s, which is no host's: %w", claims.Namespace, claims.Account, errNoJoin)
	}
	place, err := Of(config, claims.Namespace, claims.Machine())
	if err != nil {
		return place, err
	}
	if err := Bind(h.State, place); err != nil {
		return place, err
	}
	if err := credential.Write(h.TokenFile(), token); err != nil {
		return place, err
	}
	if err := h.writeKubeconfig(config); err != nil {
		return place, err
	}
	return place, h.configure(agent.Config{Kubeconfig: h.Kubeconfig(), Namespace: place.Namespace, Machine: place.Machine})
}

// readJoin takes a kubeconfig that carries all it needs: no file, no program, no password.
func readJoin(text []byte) (*rest.Config, string, error) {
	raw, err := clientcmd.Load(text)
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w: %w", err, errNoJoin)
	}
	current := raw.Contexts[raw.CurrentContext]
	if current == nil || raw.Clusters[current.Cluster] == nil || raw.AuthInfos[current.AuthInfo] == nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: its current context is not whole: %w", errNoJoin)
	}
	cluster, user := raw.Clusters[current.Cluster], raw.AuthInfos[current.AuthInfo]
	if user.Token == "" || user.TokenFile != "" || user.Exec != nil || user.AuthProvider != nil || user.ClientCertificate != "" ||
		cluster.CertificateAuthority != "" || cluster.InsecureSkipTLSVerify {
		return nil, "", fmt.Errorf("reading the kubeconfig: its user must be a token, and its authority in the file: %w", errNoJoin)
	}
	config := &rest.Config{Host: cluster.Server, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData, ServerName: cluster.TLSServerName}}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, "", fmt.Errorf("reading the authority in the kubeconfig: %w: %w", err, errNoJoin)
	}
	return config, user.Token, nil
}

func (h Host) writeKubeconfig(config *rest.Config) error {
	out := clientcmdapi.NewConfig()
	out.Clusters["refit"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}
	out.AuthInfos["refit"] = &clientcmdapi.AuthInfo{TokenFile: h.TokenFile()}
	out.Contexts["refit"] = &clientcmdapi.Context{Cluster: "refit", AuthInfo: "refit"}
	out.CurrentContext = "refit"
	text, err := clientcmd.Write(*out)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(h.Etc, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", h.Etc, err)
	}
	return files.WriteAtomic(h.Kubeconfig(), text, 0o600)
}

// configure writes agent.yaml, and leaves in it what a binding is not about.
func (h Host) configure(to agent.Config) error {
	now, err := agent.ReadConfig(h.Config)
	if err != nil {
		return err
	}
	now.Kubeconfig, now.Namespace, now.Machine = to.Kubeconfig, to.Namespace, to.Machine
	text, err := yaml.Marshal(now)
	if err != nil {
		return fmt.Errorf("encoding the agent's configuration: %w", err)
	}
	return files.WriteAtomic(h.Config, text, 0o644)
}

// Leave unbinds the host; what it was bound to is nil where that was nothing, or could not be
// read. The record of its operations stays. Where join bound it, the agent follows the
// kubelet's cluster when it is started next.
func (h Host) Leave() (*Place, error) {
	was, _ := Read(h.State) // damaged or not, it goes
	now, err := agent.ReadConfig(h.Config)
	if err != nil {
		return was, err
	}
	mine := []string{h.TokenFile(), file(h.State)}
	if now.Kubeconfig == h.Kubeconfig() { // else /etc/refit is not touched: a pod may not write there
		if err := h.configure(agent.Config{}); err != nil {
			return was, err
		}
		mine = append(mine, h.Kubeconfig())
	}
	for _, path := range mine {
		if err := files.Remove(path); err != nil {
			return was, fmt.Errorf("unbinding this host: %w", err)
		}
	}
	return was, nil
}
