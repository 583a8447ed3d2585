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

	"github.com/refit-dev/refit/pkg/upgrade"
)

// StaticPods are the pods of every file that the kubelet reads from its directory of
// manifests, "" for the one of kubeadm: as the kubelet does it, whatever the names end
// in, without hidden files and directories. A file that is no pod is none to the kubelet either.
func (c *ControlPlane) StaticPods(dir string) ([]upgrade.StaticPodFacts, error) {
	dir = firstOf(dir, manifestDir)
	entries, err := os.ReadDir(c.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the static pod manifests: %w", err)
	}
	var pods []upgrade.StaticPodFacts
	var problems error
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		at, err := os.Stat(c.path(path)) // of what a link leads to
		if strings.HasPrefix(entry.Name(), ".") || err != nil || !at.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(c.path(path))
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("reading a static pod manifest: %w", err))
			continue
		}
		var pod corev1.Pod
		if yaml.Unmarshal(data, &pod) == nil && pod.Kind == "Pod" && pod.Name != "" {
			pods = append(pods, upgrade.StaticPodFacts{Path: path, Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return pods, problems
}

// FeatureGates are those that the manifests set, such as NodeSwap=true, by component.
func (c *ControlPlane) FeatureGates() (map[string][]string, error) {
	var problems error
	gates := map[string][]string{}
	for _, component := range Components {
		m, err := c.manifest(component)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		for pair := range strings.SplitSeq(m.flag("feature-gates"), ",") {
			if pair = strings.TrimSpace(pair); pair != "" {
				gates[component] = append(gates[component], pair)
			}
		}
	}
	return gates, problems
}
