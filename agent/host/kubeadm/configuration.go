package kubeadm

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// configurationSince is the first release whose kubeadm reads an UpgradeConfiguration.
const configurationSince = "v1.31.0"

// Generous where kubeadm's defaults are short: on a busy host an API server that
// restarts is away for longer than a minute, and giving up then costs a whole retry.
const (
	apiCallTimeout   = 5 * time.Minute
	etcdCallTimeout  = 5 * time.Minute
	manifestsTimeout = 10 * time.Minute
)

// configuration is the part of kubeadm's UpgradeConfiguration that we set.
type configuration struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Apply      options  `json:"apply"`
	Node       options  `json:"node"`
	Timeouts   timeouts `json:"timeouts"`
}

type options struct {
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`
	SkipPhases            []string `json:"skipPhases,omitempty"`
	ImagePullPolicy       string   `json:"imagePullPolicy"`
}

type timeouts struct {
	KubernetesAPICall string `json:"kubernetesAPICall"`
	EtcdAPICall       string `json:"etcdAPICall"`
	UpgradeManifests  string `json:"upgradeManifests"`
}

func readsConfiguration(own string) bool {
	since, _ := upgrade.ParseKubernetes(configurationSince)
	version, ok := upgrade.ParseKubernetes(own)
	return ok && !version.LessThan(since)
}

func (k *Kubeadm) writeConfiguration(u upgrade.KubeadmUpgrade) (string, error) {
	same := options{IgnorePreflightErrors: u.IgnorePreflightErrors, SkipPhases: u.SkipPhases, ImagePullPolicy: "IfNotPresent"} // images are staged
	data, err := yaml.Marshal(configuration{
		APIVersion: "kubeadm.k8s.io/v1beta4", Kind: "UpgradeConfiguration", Apply: same, Node: same,
		Timeouts: timeouts{
			KubernetesAPICall: apiCallTimeout.String(), EtcdAPICall: etcdCallTimeout.String(), UpgradeManifests: manifestsTimeout.String(),
		},
	})
	if err != nil {
		return "", fmt.Errorf("writing kubeadm's configuration: %w", err)
	}
	dir := filepath.Join(k.Root, k.State, "kubeadm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the directory of kubeadm's configuration: %w", err)
	}
	path := filepath.Join(dir, "upgrade.yaml")
	return path, files.WriteAtomic(path, data, 0o600) //nolint:wrapcheck // says which file
}
