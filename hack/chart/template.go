package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// keep is Helm's word for what an uninstallation leaves: the CRDs and the Machines' namespace, with which the Machines would go.
const keep = "helm.sh/resource-policy"

// Marks stand in the objects for what a value decides. They are plain words, so that YAML quotes none.
const (
	markMachines  = "__machines__"
	markSystem    = "__coordinator__"
	markImage     = "__image__"
	markReplicas  = "__replicas__"
	markPriority  = "__priority__"
	markResources = "__resources__"
	markEgress    = "__egress__"
)

// What the marks become.
var actions = strings.NewReplacer(
	markMachines, "{{ .Values.namespaces.machines }}",
	markSystem, "{{ .Values.namespaces.coordinator }}",
	markImage, `{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}`,
	markReplicas, "{{ int .Values.replicas }}",
	markPriority, "{{ .Values.priorityClassName | quote }}",
)

// templateOf makes a template of the objects of one file, which renders to the same objects with the default values.
func templateOf(name string, text []byte, d *defaults) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "{{- /* Made of deploy/%s by hack/chart. */}}\n", name)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o map[string]any
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return out.String(), nil
		} else if err != nil {
			return "", fmt.Errorf("decoding: %w", err)
		}
		if len(o) == 0 {
			continue
		}
		one, err := objectTemplate(o, d)
		if err != nil {
			return "", err
		}
		out.WriteString(one)
	}
}

func objectTemplate(o map[string]any, d *defaults) (string, error) {
	kind, _ := o["kind"].(string)
	if err := mark(kind, o, d); err != nil {
		return "", fmt.Errorf("%s: %w", kind, err)
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encoding: %w", err)
	}
	body := strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`)
	body = blocks(actions.Replace(body))
	if condition := conditions[kind]; condition != "" {
		return "{{- if " + condition + " }}\n---\n" + body + "{{- end }}\n", nil
	}
	return "---\n" + body, nil
}

// conditions are the values that leave objects of a kind out.
var conditions = map[string]string{
	"CustomResourceDefinition": ".Values.crds.install",
	"Namespace":                ".Values.namespaces.create",
	"NetworkPolicy":            ".Values.networkPolicy.enabled",
}

// blocks replaces the marks of which each is a whole line, and becomes several.
func blocks(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch strings.TrimSpace(line) {
		case "resources: " + markResources:
			lines[i] = fmt.Sprintf("%sresources:\n%s{{- toYaml .Values.resources | nindent %d }}\n", line[:indent], line[:indent], indent+2)
		case "- " + markEgress:
			lines[i] = fmt.Sprintf("%s{{- with .Values.networkPolicy.extraEgress }}\n%s{{- toYaml . | nindent %d }}\n%s{{- end }}\n", line[:indent], line[:indent], indent, line[:indent])
		}
	}
	return strings.Join(lines, "")
}
