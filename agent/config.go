package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sigs.k8s.io/yaml"
)

// DefaultConfigFile binds the host to a cluster.
const DefaultConfigFile = "/etc/refit/agent.yaml"

// Config is the content of the configuration file. Every field has a default.
type Config struct {
	// Kubeconfig of the cluster where the Machine is; the kubelet's own unless set.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespace of the Machine.
	Namespace string `json:"namespace,omitempty"`
	// Machine is the name of the Machine; the node name of the client certificate unless set.
	Machine string `json:"machine,omitempty"`
	// Executor is the path of refit-executor; beside the agent unless set.
	Executor string `json:"executor,omitempty"`
}

func (c Config) withDefaults() Config {
	if c.Kubeconfig == "" {
		c.Kubeconfig = "/etc/kubernetes/kubelet.conf"
	}
	if c.Namespace == "" {
		c.Namespace = "refit"
	}
	return c
}

// LoadConfig reads a configuration file. A field or a file that is not there or empty stands for its default.
func LoadConfig(path string) (Config, error) {
	config, err := ReadConfig(path)
	return config.withDefaults(), err
}

// ReadConfig is LoadConfig without the defaults.
func ReadConfig(path string) (Config, error) {
	var config Config
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return config, fmt.Errorf("reading the agent's configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return config, fmt.Errorf("reading %s: %w: known fields are kubeconfig, namespace, machine and executor", path, err)
	}
	return config, nil
}
