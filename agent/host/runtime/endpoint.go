package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// knownSockets are looked for when the kubelet does not say which runtime it uses.
var knownSockets = []string{"/run/containerd/containerd.sock", "/var/run/crio/crio.sock"}

var endpointFlag = regexp.MustCompile(`--container-runtime-endpoint[= ]"?([^\s"']+)`)

// Detect finds the endpoint that the kubelet of the host under root uses: its
// configuration first, then its flags, then the one socket that is there. Two
// sockets and nobody who says which is an error: a guess could stop the wrong pods.
func Detect(root string) (string, error) {
	endpoint, err := configured(filepath.Join(root, "var/lib/kubelet/config.yaml"))
	if err != nil || endpoint != "" {
		return endpoint, err
	}
	flags, err := os.ReadFile(filepath.Join(root, "var/lib/kubelet/kubeadm-flags.env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the kubelet's flags: %w", err)
	}
	if found := endpointFlag.FindSubmatch(flags); found != nil {
		return Normalize(string(found[1])), nil
	}
	return onlySocket(root)
}

func configured(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	var config struct {
		ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("reading the kubelet's configuration %s: %w", path, err)
	}
	return Normalize(config.ContainerRuntimeEndpoint), nil
}

func onlySocket(root string) (string, error) {
	var found []string
	for _, socket := range knownSockets {
		if _, err := os.Stat(filepath.Join(root, socket)); err == nil {
			found = append(found, "unix://"+socket)
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("finding the container runtime: the kubelet names no endpoint and there are several: %s; set containerRuntimeEndpoint in /var/lib/kubelet/config.yaml", strings.Join(found, ", "))
	}
	return strings.Join(found, ""), nil
}

// Normalize adds the scheme to a bare socket path.
func Normalize(endpoint string) string {
	if strings.HasPrefix(endpoint, "/") {
		return "unix://" + endpoint
	}
	return endpoint
}
