// Command fleet brings up real hosts and a real Kubernetes cluster on one machine, to try upgrades on and to test them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/test/fleet/daemon"
	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// Exit codes: a command run inside a host ends with its own.
const (
	exitFailure = 1
	exitUsage   = 2
)

// exitCode ends the program with a code and no message of ours.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a mistake in the command line.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	program, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error: finding this program:", err)
		return exitFailure
	}
	testfleet.Program = program
	root := rootCommand()
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	var code exitCode
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "Error:", err)
		fmt.Fprintln(os.Stderr, "See: fleet --help")
		return exitUsage
	}
	fmt.Fprintln(os.Stderr, "Error:", err)
	return exitFailure
}

// options are common to all commands.
type options struct{ name string }

func rootCommand() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "fleet",
		Short: "Real hosts and a real Kubernetes cluster on one machine",
		Long: `fleet boots hosts with systemd-nspawn, installs Kubernetes on them from its own apt mirror, and makes a cluster of them
with kubeadm. It keeps its state in /var/lib/refit-fleet, or in $REFIT_FLEET_STATE, and what it builds in the cache.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs, // so that RunE sees a command that does not exist
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return cmd.Help()
		},
	}
	root.PersistentFlags().StringVar(&o.name, "name", "refit", "name of the fleet")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(upCommand(o), downCommand(o), listCommand(), kubeconfigCommand(o), artefactsCommand(),
		execCommand(o), shellCommand(o), logsCommand(o), killCommand(o), startCommand(o), rebootCommand(o))
	root.AddCommand(hiddenCommands()...)
	return root
}

// hiddenCommands are what the program becomes for its own background processes.
func hiddenCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: daemon.Verb + " FLEET", Hidden: true, Args: exactly(1),
			RunE: func(cmd *cobra.Command, args []string) error { return daemon.Serve(cmd.Context(), args[0]) },
		},
		{
			Use: hosts.MonitorVerb + " FLEET HOST", Hidden: true, Args: exactly(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return testfleet.Monitor(cmd.Context(), args[0], args[1])
			},
		},
		{
			Use: hosts.EnterVerb + " CGROUP ARGV...", Hidden: true, DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error {
				if len(args) < 2 {
					return usageError{errors.New("a cgroup and a command are needed")}
				}
				return hosts.EnterAndExec(args[0], args[1:])
			},
		},
	}
}

// exactly is cobra.ExactArgs with an error that counts as a mistake in the command line.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("fleet %s: %d arguments given, %d needed", cmd.Use, len(args), n)}
		}
		return nil
	}
}
