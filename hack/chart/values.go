package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// defaults are what the manifests have where values decide.
type defaults struct {
	repository, tag, priority string
	replicas, resources       any
}

func (d *defaults) note(deployment, pod, container map[string]any) error {
	image, _ := container["image"].(string)
	d.priority, _ = pod["priorityClassName"].(string)
	d.replicas, d.resources = deployment["replicas"], container["resources"]
	var ok bool
	if d.repository, d.tag, ok = strings.Cut(image, ":"); !ok || d.priority == "" || d.replicas == nil || d.resources == nil {
		return fmt.Errorf("the Deployment must set replicas, priorityClassName, resources and an image with a tag (it has %q), which are the chart's default values", image)
	}
	return nil
}

func (d *defaults) values() (string, error) {
	if d.repository == "" {
		return "", fmt.Errorf("the manifests have no Deployment")
	}
	resources, err := yaml.Marshal(d.resources)
	if err != nil {
		return "", fmt.Errorf("encoding the resources: %w", err)
	}
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(string(resources)), "\n", "\n  ")
	return strings.NewReplacer("REPOSITORY", d.repository, "REPLICAS", fmt.Sprint(d.replicas), "PRIORITY", d.priority, "RESOURCES", indented).Replace(values), nil
}

const values = `# The coordinator's image. Without a tag it is the chart's appVersion.
image:
  repository: REPOSITORY
  tag: ""

# One leads, the others stand by.
replicas: REPLICAS

resources:
RESOURCES

priorityClassName: PRIORITY

namespaces:
  # Where the Machines live, and no workload.
  machines: refit
  # Where the coordinator runs.
  coordinator: refit-system
  # Have the chart make both. The Machines' namespace stays when the chart is uninstalled.
  create: true

crds:
  # Install the CRDs and upgrade them with the chart. They stay when the chart is uninstalled, and the Machines with them.
  install: true

networkPolicy:
  enabled: true
  # More rules, where an API server listens on another port than 443 and 6443, or Prometheus on another than 9090.
  extraEgress: []
`

const schema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "global": {"type": "object"},
    "image": {
      "type": "object",
      "additionalProperties": false,
      "required": ["repository"],
      "properties": {"repository": {"type": "string", "minLength": 1}, "tag": {"type": "string"}}
    },
    "replicas": {"type": "integer", "minimum": 0},
    "resources": {"type": "object"},
    "priorityClassName": {"type": "string"},
    "namespaces": {
      "type": "object",
      "additionalProperties": false,
      "required": ["machines", "coordinator"],
      "properties": {
        "machines": {"$ref": "#/definitions/name"},
        "coordinator": {"$ref": "#/definitions/name"},
        "create": {"type": "boolean"}
      }
    },
    "crds": {"type": "object", "additionalProperties": false, "properties": {"install": {"type": "boolean"}}},
    "networkPolicy": {
      "type": "object",
      "additionalProperties": false,
      "properties": {"enabled": {"type": "boolean"}, "extraEgress": {"type": "array", "items": {"type": "object"}}}
    }
  },
  "definitions": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}}
}
`

const chart = `apiVersion: v2
name: refit
description: Upgrades the machines of a Kubernetes cluster in place
type: application
# Both are set when a release is made.
version: 0.0.0-dev
appVersion: TAG
kubeVersion: ">=1.30.0-0"
home: https://github.com/refit-dev/refit
sources: [https://github.com/refit-dev/refit]
`

const notes = `The coordinator runs in namespace {{ .Values.namespaces.coordinator }}; Machines live in {{ .Values.namespaces.machines }}.
Install the package refit-agent on every host, then: kubectl refit adopt -n {{ .Values.namespaces.machines }}
`

const readme = `# The chart of Refit

CRDs, admission policies and the coordinator: what ` + "`kubectl refit install`" + ` applies, object by object. Everything here is written
by ` + "`make generate`" + ` from the plain manifests beside it; edit those. How to install, upgrade and remove it, CRDs included, is in
[docs/installation.md](../../docs/installation.md).
`
