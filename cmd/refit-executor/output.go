package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/files"
)

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVar(output, "output", "", "file to write, whole or not at all; standard output unless set")
}

func require(cmd *cobra.Command, flag string) {
	_ = cmd.MarkFlagRequired(flag) // fails only for a flag that does not exist
}

// read decodes a request of the agent.
func read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// write gives an answer, to a file that appears whole.
func write(cmd *cobra.Command, output, format string, v any) error {
	data, err := encode(format, v)
	if err != nil {
		return err
	}
	if output == "" {
		_, err = cmd.OutOrStdout().Write(data)
		return err
	}
	return files.WriteAtomic(output, data, 0o600)
}

func encode(format string, v any) ([]byte, error) {
	switch format {
	case "json":
		data, err := json.MarshalIndent(v, "", "  ")
		return append(data, '\n'), err
	case "yaml":
		return yaml.Marshal(v)
	}
	return nil, fmt.Errorf("output format %q is not known: it is json or yaml", format)
}
