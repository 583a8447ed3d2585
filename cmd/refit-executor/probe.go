package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/agent/executor"
	"github.com/refit-dev/refit/agent/host/packages"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

const lockWait = 30 * time.Second

func factsCommand(o *options) *cobra.Command {
	var packages []string
	var indexes bool
	var output, format string
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "Say what runs on this host",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := usage.OneOf("format", format, "json", "yaml"); err != nil {
				return err
			}
			if err := usage.PackageNames("package", packages); err != nil {
				return err
			}
			prober := o.prober(systemd.New())
			prober.Indexes = indexes
			found, err := prober.Facts(cmd.Context(), packages)
			if err != nil {
				return explain(output, err)
			}
			return write(cmd, output, format, found)
		},
	}
	cmd.Flags().StringArrayVar(&packages, "package", nil, "look at this package too (may be repeated)")
	cmd.Flags().BoolVar(&indexes, "indexes", false, "say what the host's package indexes offer too")
	addOutput(cmd, &output)
	cmd.Flags().StringVarP(&format, "format", "o", "json", "json or yaml")
	return cmd
}

func candidatesCommand(o *options) *cobra.Command {
	var request, output string
	cmd := &cobra.Command{
		Use:   "candidates --request FILE",
		Short: "Say what repositories offer, from their signed indexes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var wanted upgrade.CandidateRequest
			if err := read(request, &wanted); err != nil {
				return err
			}
			return explain(output, o.alone(cmd.Context(), func() error {
				found, err := packages.Of(o.root).Candidates(cmd.Context(), wanted)
				if err != nil {
					return outcome(err)
				}
				return write(cmd, output, "json", found)
			}))
		},
	}
	cmd.Flags().StringVar(&request, "request", "", "file with the request")
	addOutput(cmd, &output)
	mandatory(cmd, "request")
	return cmd
}

func stageCommand(o *options) *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "stage --plan FILE",
		Short: "Bring what a plan needs onto the host; disturb nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var plan upgrade.Plan
			if err := read(file, &plan); err != nil {
				return err
			}
			var result executor.StageResult
			err := o.alone(cmd.Context(), func() (err error) {
				result, err = o.stager(cmd.Context()).Stage(cmd.Context(), plan)
				return err
			})
			if err != nil {
				return explain(output, err)
			}
			if err := write(cmd, output, "json", result); err != nil {
				return err
			}
			if result.Refused() {
				return fmt.Errorf("staging the plan: %w: the findings say why", errRefused)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "plan", "", "file with the plan")
	addOutput(cmd, &output)
	mandatory(cmd, "plan")
	return cmd
}

// outcome marks a refusal that only another spec or another host can lift.
func outcome(err error) error {
	var blocked *upgrade.Blocked
	if errors.As(err, &blocked) && blocked.Terminal {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}
