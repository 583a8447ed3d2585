package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/usage"
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
		return usage.OneOf("output", format, "yaml", "json")
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = w.Write(redact.Bytes(text))
	return err
}

// printPlans writes plans; for people also the steps, since a host has one.
func printPlans(w io.Writer, output string, list preview.PlanList) error {
	switch output {
	case "table", "wide":
		var table bytes.Buffer
		if err := preview.Print(&table, list, output == "wide"); err != nil {
			return err
		}
		if _, err := w.Write(redact.Bytes(table.Bytes())); err != nil {
			return err
		}
		return printSteps(w, list.Items[0])
	}
	return encode(w, output, list)
}

func printSteps(w io.Writer, plan preview.MachinePlan) error {
	var b strings.Builder
	if plan.State == preview.StateUpToDate {
		b.WriteString("\nNothing to do: the host is what the Machine asks for.\n")
	}
	for i, step := range plan.Steps {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%3d  %s\n", i+1, step.Description)
		if step.Irreversible != "" {
			fmt.Fprintf(&b, "     cannot be undone: %s\n", step.Irreversible)
		}
	}
	_, err := io.WriteString(w, redact.URIs(b.String()))
	return err
}
