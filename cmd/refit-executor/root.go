package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/pkg/logging"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/pkg/version"
)

// options are common to all commands.
type options struct {
	root     string
	logLevel string
}

func rootCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:           "refit-executor",
		Short:         "Probes this host and carries accepted plans out on it",
		Version:       version.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logging.New(o.logLevel)
			if err != nil {
				return usage.Errorf("reading --log-level: %w", err)
			}
			cmd.SetContext(logr.NewContext(cmd.Context(), log))
			return nil
		},
	}
	cmd.PersistentFlags().StringVar(&o.root, "root", "/", "directory that is the host's root")
	cmd.PersistentFlags().StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	cmd.AddCommand(factsCommand(o), candidatesCommand(o), stageCommand(o), runCommand(o), resumeCommand(o), statusCommand(o), versionCommand())
	usage.Strict(cmd)
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which Refit this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Version)
			return err
		},
	}
}
