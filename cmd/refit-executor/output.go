package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVar(output, "output", "", "file to write, whole or not at all; standard output unless set")
}

func mandatory(cmd *cobra.Command, flag string) {
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
		_, err = cmd.OutOrStdout().Write(redact.Bytes(data)) // a person reads it
		return err
	}
	return files.WriteAtomic(output, data, 0o600)
}

// explain leaves the reason of an error where the result was asked for: the agent
// carries it to the Machine.
func explain(output string, err error) error {
	if err == nil || output == "" {
		return err
	}
	failure := &upgrade.Blocked{Message: err.Error()}
	var blocked *upgrade.Blocked
	if errors.As(err, &blocked) {
		failure = blocked
	} else if full := files.NoSpace(err); full != nil {
		failure = full
	}
	data, encodeErr := encode("json", upgrade.FailureFile{Failure: failure})
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	return errors.Join(err, files.WriteAtomic(output, data, 0o600))
}

func encode(format string, v any) ([]byte, error) {
	switch format {
	case "json":
		data, err := json.MarshalIndent(v, "", "  ")
		return append(data, '\n'), err
	case "yaml":
		return yaml.Marshal(v)
	}
	return nil, usage.OneOf("format", format, "json", "yaml")
}
