package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/test/fleet/daemon"
	"github.com/refit-dev/refit/test/fleet/state"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

func upCommand(o *options) *cobra.Command {
	var up testfleet.Options
	cmd := &cobra.Command{
		Use: "up", Short: "Bring a fleet up, or mend one that is up", Args: exactly(0),
		Example: "  fleet up --name demo --control-planes 1 --workers 2 --kubernetes v1.36.3 --containerd v1.7.35 --also-kubernetes v1.37.2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			up.Name, up.Progress = o.name, cmd.OutOrStdout()
			f, err := testfleet.Up(cmd.Context(), up)
			if err != nil {
				return err
			}
			if !up.NoCluster {
				fmt.Fprintf(cmd.OutOrStdout(), "\nexport KUBECONFIG=%s\n", f.Kubeconfig())
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&up.ControlPlanes, "control-planes", 1, "hosts of the control plane")
	flags.IntVar(&up.Workers, "workers", 2, "worker hosts")
	flags.StringVar(&up.Kubernetes, "kubernetes", "v1.36.3", "Kubernetes version the hosts start with")
	flags.StringVar(&up.Containerd, "containerd", "v1.7.35", "containerd version the hosts start with")
	flags.BoolVar(&up.CoreDNS, "coredns", false, "run CoreDNS in the cluster; each of its releases takes minutes to build once")
	flags.BoolVar(&up.NoCluster, "no-cluster", false, "hosts that are no nodes of anything; with --control-planes 0")
	flags.StringSliceVar(&up.AlsoKubernetes, "also-kubernetes", nil, "more Kubernetes versions in mirror and registry, to upgrade to")
	flags.StringSliceVar(&up.AlsoContainerd, "also-containerd", nil, "more containerd versions in the mirror, to upgrade to")
	return cmd
}

func downCommand(o *options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "down", Short: "Take a fleet down and check that nothing of it is left", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := []string{o.name}
			if all {
				var err error
				if names, err = state.List(); err != nil {
					return err
				}
			}
			var failed error
			for _, name := range names {
				failed = errors.Join(failed, down(cmd, name))
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every fleet of this machine")
	return cmd
}

func down(cmd *cobra.Command, name string) error {
	err := testfleet.Down(cmd.Context(), name)
	if errors.Is(err, state.ErrUnknown) {
		fmt.Fprintf(cmd.OutOrStdout(), "There is no fleet %s: nothing to take down.\n", name)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Fleet %s is down; nothing of it is left.\n", name)
	return nil
}

// fleetView is a fleet as list shows it.
type fleetView struct {
	Name       string     `json:"name"`
	Kubernetes string     `json:"kubernetes"`
	Containerd string     `json:"containerd"`
	API        string     `json:"api"`
	Kubeconfig string     `json:"kubeconfig"`
	DaemonPid  int        `json:"daemonPid"`
	Hosts      []hostView `json:"hosts"`
}

type hostView struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	ControlPlane bool   `json:"controlPlane"`
	Running      bool   `json:"running"`
	Leader       int    `json:"leader,omitempty"`
	RootDir      string `json:"rootDir"`
}

func listCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List the fleets of this machine and their hosts", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return usageError{fmt.Errorf("output format %q: only json is known", output)}
			}
			views, err := views()
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(views)
			}
			return printViews(cmd.OutOrStdout(), views)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

func views() ([]fleetView, error) {
	names, err := state.List()
	if err != nil {
		return nil, err
	}
	all := []fleetView{}
	for _, n := range names {
		f, err := testfleet.Open(n)
		if err != nil {
			return nil, err
		}
		all = append(all, view(f))
	}
	return all, nil
}

func view(f *testfleet.Fleet) fleetView {
	kubernetes, containerd := f.Versions()
	v := fleetView{Name: f.Name(), Kubernetes: kubernetes, Containerd: containerd, API: f.APIEndpoint(), Kubeconfig: f.Kubeconfig(), DaemonPid: daemon.Pid(f.Name())}
	for _, h := range f.Hosts() {
		leader := h.Leader()
		v.Hosts = append(v.Hosts, hostView{
			Name: h.Name(), Address: h.Address(), ControlPlane: h.ControlPlane(), Running: leader != 0, Leader: leader, RootDir: h.RootDir(),
		})
	}
	return v
}

func printViews(out io.Writer, views []fleetView) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "FLEET\tHOST\tADDRESS\tSTATE\tSTARTED WITH")
	for _, f := range views {
		for _, h := range f.Hosts {
			condition := "off"
			if h.Running {
				condition = "on"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\tKubernetes %s, containerd %s\n", f.Name, h.Name, h.Address, condition, f.Kubernetes, f.Containerd)
		}
	}
	return w.Flush()
}

func kubeconfigCommand(o *options) *cobra.Command {
	var admin string
	cmd := &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig, or write a copy", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := testfleet.Open(o.name)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(f.Kubeconfig())
			if err != nil {
				return fmt.Errorf("reading the kubeconfig (is the fleet completely up?): %w", err)
			}
			if admin == "" {
				fmt.Fprintln(cmd.OutOrStdout(), f.Kubeconfig())
				return nil
			}
			if err := os.WriteFile(admin, data, 0o600); err != nil {
				return fmt.Errorf("writing the kubeconfig: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "", "write the kubeconfig to this file")
	return cmd
}
