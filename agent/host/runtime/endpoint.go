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

// OfHost is the runtime that the kubelet of the host under root uses, with the
// kubelet's cgroup driver, so that a probe starts a sandbox the way the kubelet would.
func OfHost(root string) (*Runtime, error) {
	endpoint, err := Detect(root)
	if err != nil {
		return New(""), err
	}
	config, err := kubeletConfig(root)
	if err != nil {
		return New(endpoint), err
	}
	r := New(endpoint)
	r.CgroupDriver = config.CgroupDriver
	return r, nil
}

// Detect finds the endpoint that the kubelet of the host under root uses: its
// configuration first, then its flags, then the one socket that is there. Two
// sockets and nobody who says which is an error: a guess could stop the wrong pods.
func Detect(root string) (string, error) {
	config, err := kubeletConfig(root)
	if err != nil || config.ContainerRuntimeEndpoint != "" {
		return Normalize(config.ContainerRuntimeEndpoint), err
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

// kubelet is the part of the kubelet's configuration that concerns the runtime.
type kubelet struct {
	ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	CgroupDriver             string `json:"cgroupDriver"`
}

func kubeletConfig(root string) (kubelet, error) {
	var config kubelet
	path := filepath.Join(root, "var/lib/kubelet/config.yaml")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return config, fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("reading the kubelet's configuration %s: %w", path, err)
	}
	return config, nil
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
