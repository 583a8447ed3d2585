package main

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/usage"
)

// printDocuments writes objects as YAML documents, or as one JSON list.
func printDocuments[T any](out io.Writer, format string, objects []T) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding the objects: %w", err)
		}
		fmt.Fprintln(out, string(text))
		return nil
	case "yaml":
		for i, o := range objects {
			text, err := yaml.Marshal(o)
			if err != nil {
				return fmt.Errorf("encoding an object: %w", err)
			}
			if i > 0 {
				fmt.Fprintln(out, "---")
			}
			fmt.Fprint(out, string(text))
		}
		return nil
	}
	return usage.OneOf("output", format, "yaml", "json")
}
