package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/test/fleet/testfleet"
)

func artefactsCommand() *cobra.Command {
	o := testfleet.Options{CoreDNS: true}
	var quiet bool
	cmd := &cobra.Command{
		Use: "artefacts", Short: "Make what fleets are made of, and nothing else; print the directory of the programs", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var progress io.Writer = os.Stderr
			if quiet {
				progress = io.Discard
			}
			dir, err := testfleet.Artefacts(cmd.Context(), o, progress)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), dir)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Kubernetes, "kubernetes", "v1.36.3", "Kubernetes version")
	cmd.Flags().StringSliceVar(&o.AlsoKubernetes, "also-kubernetes", []string{"v1.37.2"}, "more Kubernetes versions")
	cmd.Flags().StringVar(&o.Containerd, "containerd", "v1.7.35", "containerd version")
	cmd.Flags().StringSliceVar(&o.AlsoContainerd, "also-containerd", []string{"v2.4.2"}, "more containerd versions")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress")
	return cmd
}
