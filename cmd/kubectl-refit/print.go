package main

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// printAs writes a value as json or yaml for programs, else its table for people.
func (s streams) printAs(output, what string, value any, table func() error) error {
	var text []byte
	var err error
	switch output {
	case "json":
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return table()
	}
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", what, err)
	}
	_, err = s.out.Write(text)
	return err //nolint:wrapcheck // of the standard output
}
