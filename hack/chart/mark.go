package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The namespaces of the manifests.
const (
	machines = "refit"
	system   = "refit-system"
)

var namespaces = map[string]string{machines: markMachines, system: markSystem}

// Namespaces also stand within texts: in the coordinator's arguments, and in the policies where its user is named.
var mentions = strings.NewReplacer(
	"system:serviceaccount:"+system+":", "system:serviceaccount:"+markSystem+":",
	"--leader-election-namespace="+system, "--leader-election-namespace="+markSystem,
	"--namespace="+machines, "--namespace="+markMachines,
)

// mark puts marks into an object where values decide, and notes what the manifests have there.
func mark(kind string, o map[string]any, d *defaults) error {
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		return errors.New("the object has no metadata")
	}
	if kind == "CustomResourceDefinition" || kind == "Namespace" && meta["name"] == machines {
		annotations, _ := meta["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		annotations[keep] = "keep"
		meta["annotations"] = annotations
	}
	if kind == "Namespace" {
		rename(meta, "name")
	}
	walk(o)
	switch kind {
	case "Deployment":
		return markDeployment(o, d)
	case "NetworkPolicy":
		egress, _, err := unstructured.NestedSlice(o, "spec", "egress")
		if err != nil {
			return fmt.Errorf("reading the egress rules: %w", err)
		}
		return unstructured.SetNestedSlice(o, append(egress, markEgress), "spec", "egress") //nolint:wrapcheck // the caller names the object
	}
	return nil
}

func rename(in map[string]any, field string) {
	if name, _ := in[field].(string); namespaces[name] != "" {
		in[field] = namespaces[name]
	}
}

// walk marks the namespaces wherever an object names one.
func walk(v any) any {
	switch v := v.(type) {
	case map[string]any:
		rename(v, "namespace")
		for key, value := range v {
			v[key] = walk(value)
		}
		return v
	case []any:
		for i := range v {
			v[i] = walk(v[i])
		}
		return v
	case string:
		return mentions.Replace(v)
	}
	return v
}

func markDeployment(o map[string]any, d *defaults) error {
	spec, _, err := unstructured.NestedFieldNoCopy(o, "spec")
	deployment, ok := spec.(map[string]any)
	if err != nil || !ok {
		return errors.New("the Deployment has no spec")
	}
	pod, _, err := unstructured.NestedFieldNoCopy(deployment, "template", "spec")
	if err != nil {
		return fmt.Errorf("reading the pod: %w", err)
	}
	podSpec, _ := pod.(map[string]any)
	containers, _ := podSpec["containers"].([]any)
	if len(containers) != 1 {
		return fmt.Errorf("the chart's values are for one container, and the pod has %d", len(containers))
	}
	container, _ := containers[0].(map[string]any)
	if err := d.note(deployment, podSpec, container); err != nil {
		return err
	}
	deployment["replicas"], podSpec["priorityClassName"] = markReplicas, markPriority
	container["image"], container["resources"] = markImage, markResources
	return nil
}
