package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/pkg/logging"
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
				return err
			}
			cmd.SetContext(logr.NewContext(cmd.Context(), log))
			return nil
		},
	}
	cmd.PersistentFlags().StringVar(&o.root, "root", "/", "directory that is the host's root")
	cmd.PersistentFlags().StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	cmd.AddCommand(factsCommand(o), candidatesCommand(o), stageCommand(o), runCommand(o), resumeCommand(o), statusCommand(o))
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
	})
	return cmd
}
