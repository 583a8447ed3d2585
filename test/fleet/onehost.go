package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// hostTimeout bounds starting and rebooting one host.
const hostTimeout = 3 * time.Minute

func (o *options) host(name string) (*testfleet.Host, error) {
	f, err := testfleet.Open(o.name)
	if err != nil {
		return nil, err
	}
	if h := f.Host(name); h != nil {
		return h, nil
	}
	var names []string
	for _, h := range f.Hosts() {
		names = append(names, h.Name())
	}
	return nil, fmt.Errorf("fleet %s has no host %q; it has %s", o.name, name, strings.Join(names, ", "))
}

func execCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "exec HOST -- COMMAND [ARGUMENT...]", Short: "Run a command inside a host; ends with its exit code",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{errors.New("fleet exec HOST -- COMMAND: a host and a command are needed")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.attach(cmd.Context(), args[0], args[1:]...)
		},
	}
}

func shellCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "shell HOST", Short: "Open a shell inside a host", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.attach(cmd.Context(), args[0], "bash", "--login")
		},
	}
}

// attach runs argv inside the host with our input and output.
func (o *options) attach(ctx context.Context, host string, argv ...string) error {
	h, err := o.host(host)
	if err != nil {
		return err
	}
	err = h.Run(ctx, hosts.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Foreground: true}, argv...)
	var failed *hosts.ExecError
	if errors.As(err, &failed) && failed.ExitCode > 0 {
		return exitCode(failed.ExitCode) // the command has said why
	}
	return err
}

func logsCommand(o *options) *cobra.Command {
	var unit string
	var follow bool
	cmd := &cobra.Command{
		Use: "logs HOST", Short: "Show the journal of a host, also of one that is off", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := o.host(args[0])
			if err != nil {
				return err
			}
			if follow && !h.Running() {
				return fmt.Errorf("host %s is off: its journal can be shown, but not followed", h.Name())
			}
			argv := []string{"journalctl", "--no-pager"}
			if unit != "" {
				argv = append(argv, "--unit="+unit)
			}
			if follow {
				argv = append(argv, "--follow")
			}
			if h.Running() {
				return o.attach(cmd.Context(), h.Name(), argv...)
			}
			journal := filepath.Join(h.RootDir(), "var/log/journal")
			local := exec.CommandContext(cmd.Context(), argv[0], append(argv[1:], "--directory="+journal)...)
			local.Stdout, local.Stderr = os.Stdout, os.Stderr
			return local.Run()
		},
	}
	cmd.Flags().StringVarP(&unit, "unit", "u", "", "only this unit")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as the journal grows")
	return cmd
}

func killCommand(o *options) *cobra.Command {
	return o.power("kill HOST", "Let a host die at once: silent, with its disk as it is", "is dead", func(_ context.Context, h *testfleet.Host) error {
		return h.Kill()
	})
}

func startCommand(o *options) *cobra.Command {
	return o.power("start HOST", "Boot a host that is off", "is up", func(ctx context.Context, h *testfleet.Host) error {
		return h.Start(ctx)
	})
}

func rebootCommand(o *options) *cobra.Command {
	return o.power("reboot HOST", "Reboot a host through its own systemd", "is up again", func(ctx context.Context, h *testfleet.Host) error {
		return h.Reboot(ctx)
	})
}

func (o *options) power(use, short, done string, act func(context.Context, *testfleet.Host) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := o.host(args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), hostTimeout)
			defer cancel()
			begin := time.Now()
			if err := act(ctx, h); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%.1fs)\n", h.Name(), done, time.Since(begin).Seconds())
			return nil
		},
	}
}
