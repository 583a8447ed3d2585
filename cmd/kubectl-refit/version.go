package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/pkg/version"
)

func newVersion(c *command) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which Refit this is",
		Args:  usage.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Fprintln(c.out, version.Version) },
	}
}
