package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/runtime"
)

// Components are the static pods of a control plane, as kubeadm names them.
var Components = []string{apiserverPod, "kube-controller-manager", "kube-scheduler", "etcd"}

// manifest is a static pod on disk.
type manifest struct{ pod corev1.Pod }

func (c *ControlPlane) manifest(component string) (manifest, error) {
	path := filepath.Join(manifestDir, component+".yaml")
	data, err := os.ReadFile(c.path(path))
	if err != nil {
		return manifest{}, fmt.Errorf("reading a static pod manifest: %w", err)
	}
	var m manifest
	if err := yaml.Unmarshal(data, &m.pod); err != nil {
		return manifest{}, fmt.Errorf("reading the static pod manifest %s: %w", path, err)
	}
	return m, nil
}

// flag is the value of a command-line flag of the pod's first container.
func (m manifest) flag(name string) string {
	if len(m.pod.Spec.Containers) == 0 {
		return ""
	}
	c := m.pod.Spec.Containers[0]
	for _, arg := range append(append([]string{}, c.Command...), c.Args...) {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// Manifests are the versions that the static pod manifests on disk ask for.
func (c *ControlPlane) Manifests() (map[string]string, error) {
	images, err := c.Images()
	versions := make(map[string]string, len(images))
	for component, image := range images {
		versions[component] = runtime.Tag(image)
	}
	return versions, err
}

// Images are the images in the static pod manifests on disk, by component.
func (c *ControlPlane) Images() (map[string]string, error) {
	images := map[string]string{}
	var problems error
	for _, component := range Components {
		m, err := c.manifest(component)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		for _, container := range m.pod.Spec.Containers {
			if container.Name == component {
				images[component] = container.Image
			}
		}
	}
	return images, problems
}

// ProxyEnvironment is what the API server's manifest has of proxies, as NAME=value.
// kubeadm writes the proxies of its own environment into new manifests, so a run
// without them would take them away.
func (c *ControlPlane) ProxyEnvironment() ([]string, error) {
	m, err := c.manifest(apiserverPod)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var env []string
	for _, container := range m.pod.Spec.Containers {
		for _, v := range container.Env {
			if strings.HasSuffix(strings.ToLower(v.Name), "_proxy") {
				env = append(env, v.Name+"="+v.Value)
			}
		}
	}
	return env, nil
}
