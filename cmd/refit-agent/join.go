package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/agent/setup"
)

func joinCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "join -f FILE",
		Short: "Bind this host to a management cluster, with what kubectl refit join-token prints",
		Long: `Bind this host to its Machine in a management cluster. FILE is what kubectl refit join-token MACHINE prints: address,
authority and the first token of the host, which the agent renews from then on. A host that is bound to another cluster,
namespace or Machine is refused until refit-agent leave. In the cluster of its own Node a host needs no join: its agent
comes with the kubelet's certificate.`,
		Example: "  kubectl refit join-token edge-7 -n site-7 | ssh edge-7 refit-agent join -f -\n  systemctl restart refit-agent",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := readFile(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			config, err := cmd.Flags().GetString("config")
			if err != nil {
				return fmt.Errorf("reading flags: %w", err)
			}
			place, err := setup.Join(config, setup.Paths{}, text)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "This host is bound to %s. Start its agent anew: systemctl restart refit-agent\n", place)
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file that kubectl refit join-token printed; - is standard input")
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	return cmd
}

// readFile reads a file, or the standard input for -.
func readFile(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(in, 1<<20))
		if err != nil {
			return nil, fmt.Errorf("reading the standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file to join with: %w", err)
	}
	return text, nil
}

func leaveCommand() *cobra.Command {
	var leaving setup.Leaving
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Unbind this host from its cluster; the record of its operations stays",
		Long: `Unbind this host from its cluster, namespace and Machine, and delete the token that it had of it. Refused while an agent
runs here, or an operation has no outcome yet. What Refit has made of the host stays as it is, and so does the record of it in
/var/lib/refit. The agent binds the host anew when it is started again: to the kubelet's cluster, or after another join.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := cmd.Flags().GetString("config")
			if err != nil {
				return fmt.Errorf("reading flags: %w", err)
			}
			was, err := setup.Leave(cmd.Context(), config, setup.Paths{}, leaving)
			if err != nil {
				return err
			}
			if was == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "This host was bound to no cluster.")
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "This host was bound to %s, and is no more.\n", was)
			return nil
		},
	}
	cmd.Flags().BoolVar(&leaving.Executor, "remove-executor", false, "also take the executor and refit-resume.service off the host that a pod of the DaemonSet has installed")
	cmd.Flags().BoolVar(&leaving.Record, "remove-record", false, "also delete the record of operations, and what is kept to undo them")
	return cmd
}

// waitCommand is the other half of a pod that has done its work before: a DaemonSet's pods do not end.
func waitCommand() *cobra.Command {
	return &cobra.Command{
		Use: "wait", Hidden: true, Short: "Do nothing until told to stop", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			<-cmd.Context().Done()
			return nil
		},
	}
}
