package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func encode(w io.Writer, format string, v any) error {
	var text []byte
	var err error
	switch format {
	case "yaml":
		text, err = yaml.Marshal(v)
	case "json":
		text, err = json.MarshalIndent(v, "", "  ")
		text = append(text, '\n')
	default:
		return fmt.Errorf("unknown output %q: use yaml or json", format)
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = w.Write(text)
	return err
}

func printPlan(w io.Writer, plan upgrade.Plan) error {
	var b strings.Builder
	if len(plan.Steps) == 0 {
		b.WriteString("Nothing to do: the host is what the Machine asks for.\n")
	} else {
		fmt.Fprintf(&b, "Disruption: %s\n", plan.Disruption)
	}
	for i, step := range plan.Steps {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, step.Describe())
		if step.Irreversible != "" {
			fmt.Fprintf(&b, "     cannot be undone: %s\n", step.Irreversible)
		}
	}
	for _, finding := range plan.Findings {
		fmt.Fprintf(&b, "%s: %s: %s\n", finding.Severity, finding.Reason, finding.Message)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
