package main

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/setup"
	"github.com/refit-dev/refit/pkg/logging"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/pkg/version"
)

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "refit-agent",
		Short:         "Keeps this host at the versions of its Machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().String("config", agent.DefaultConfigFile, "file that binds the host to a cluster")
	cmd.AddCommand(runCommand(), factsCommand(), planCommand(), applyCommand(openHost), operationsCommand(), joinCommand(), leaveCommand(), waitCommand(), versionCommand())
	usage.Strict(cmd)
	return cmd
}

func runCommand() *cobra.Command {
	var level, root string
	var daemonset bool
	pod := setup.Pod{Node: os.Getenv("NODE_NAME"), TokenFile: "/token/token", Executor: "/refit-executor"}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Follow this host's Machine until told to stop",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logging.New(level)
			if err != nil {
				return usage.Errorf("reading --log-level: %w", err)
			}
			klog.SetLogger(log)
			ctx := logr.NewContext(cmd.Context(), log)
			if daemonset {
				return setup.RunPod(ctx, pod)
			}
			config, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			return setup.Run(ctx, config, setup.PathsUnder(root))
		},
	}
	cmd.Flags().StringVar(&root, "root", "/", "directory that is the host's root")
	cmd.Flags().BoolVar(&daemonset, "daemonset", false, "run as a pod of deploy/daemonset: install the executor on the host, and speak to the API server by a token of the node NODE_NAME")
	cmd.Flags().StringVar(&pod.Namespace, "namespace", "refit", "with --daemonset: namespace of the Machine")
	cmd.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

func factsCommand() *cobra.Command {
	var packages, minors []string
	var output string
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "Say what runs on this host",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := usage.OneOf("output", output, "yaml", "json"); err != nil {
				return err
			}
			if err := usage.PackageNames("package", packages); err != nil {
				return err
			}
			for _, minor := range minors {
				if _, ok := upgrade.ParseKubernetes(minor + ".0"); !ok {
					return usage.Errorf("--minor %q is no minor: write it like v1.37", minor)
				}
			}
			host, err := newHost(cmd)
			if err != nil {
				return err
			}
			facts, err := host.Inventory(cmd.Context(), packages, minors)
			if err != nil {
				return err
			}
			return encode(cmd.OutOrStdout(), output, facts)
		},
	}
	cmd.Flags().StringArrayVar(&packages, "package", nil, "look at this package too (may be repeated)")
	cmd.Flags().StringArrayVar(&minors, "minor", nil, "ask the package sources of this Kubernetes minor too, such as v1.37 (may be repeated)")
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	return cmd
}

func planCommand() *cobra.Command {
	var file, output string
	var stated setup.Statement
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Say what would change on this host if FILE were its Machine; change nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := usage.OneOf("output", output, "table", "wide", "yaml", "json"); err != nil {
				return err
			}
			if err := checkStatement(stated); err != nil {
				return err
			}
			document, err := setup.ReadMachine(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			host, err := newHost(cmd)
			if err != nil {
				return err
			}
			draft, err := host.Plan(cmd.Context(), document, stated)
			if err != nil {
				return err
			}
			if err := printPlans(cmd.OutOrStdout(), output, draft.List); err != nil {
				return err
			}
			if refusal := draft.List.Items[0].Refusal; refusal != nil {
				return refused{refusal, output == "table" || output == "wide"}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with one Machine; - is standard input")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide, yaml or json")
	addStatement(cmd, &stated)
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	return cmd
}

func addStatement(cmd *cobra.Command, stated *setup.Statement) {
	cmd.Flags().StringVar(&stated.APIServer, "api-server-version", "", "version of the oldest API server that this host's kubelet meets, which nobody without a cluster can look up")
}

func checkStatement(stated setup.Statement) error {
	if _, ok := upgrade.ParseKubernetes(stated.APIServer); stated.APIServer != "" && !ok {
		return usage.Errorf("--api-server-version %q is no version: write it like v1.37.2", stated.APIServer)
	}
	return nil
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

func newHost(cmd *cobra.Command) (*setup.Host, error) {
	config, err := loadConfig(cmd)
	if err != nil {
		return nil, err
	}
	return setup.NewHost(config)
}

func loadConfig(cmd *cobra.Command) (agent.Config, error) {
	path, err := cmd.Flags().GetString("config")
	if err != nil {
		return agent.Config{}, fmt.Errorf("reading flags: %w", err)
	}
	return agent.LoadConfig(path)
}
