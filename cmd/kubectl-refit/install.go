package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
	"github.com/refit-dev/refit/pkg/usage"
)

type installOptions struct {
	*command
	image   string
	part    string
	agent   string // systemd, daemonset; "": as it is in the cluster, else systemd
	pods    string // the agent's image
	dryRun  bool
	output  string
	wait    bool
	timeout time.Duration
}

func newInstall(c *command) *cobra.Command {
	o := &installOptions{command: c}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install or update Refit in the cluster: CRDs, admission policies, coordinator",
		Long: `Applies the CRDs, the admission policies and the coordinator, and waits until the
coordinator is available. Installing again updates.

The agents are installed on the hosts, as a package or as files, not by this command
(--agent systemd, which is recommended). With --agent daemonset they are pods: a DaemonSet
of --agent-image in the namespace refit-agent, which installs the executor on each host.
Root on the system bus is root on the host: give nobody a role in that namespace.

Where Machines and Nodes are in two clusters, --part says which of them this one is:
management has the Machines and the coordinator, which reads the other's kubeconfig from
Secret refit-workload-kubeconfig; workload has the Nodes, and gets an account and roles only.`,
		Example: "  kubectl refit install --coordinator-image registry.example.com/refit-coordinator:v0.1.0\n  kubectl refit install --coordinator-image IMAGE --dry-run -o yaml > refit.yaml\n  kubectl refit install --coordinator-image IMAGE --agent daemonset --agent-image registry.example.com/refit-agent:v0.1.0",
		Args:    usage.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.image, "coordinator-image", "", "Image of the coordinator (required)")
	cmd.Flags().StringVar(&o.part, "part", "", "With two clusters, what this one is: management or workload")
	cmd.Flags().StringVar(&o.agent, "agent", "", "How the agents run: systemd or daemonset (default systemd; required where they are a DaemonSet already)")
	cmd.Flags().StringVar(&o.pods, "agent-image", "", "Image of agent and executor, with --agent daemonset")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Print what would be applied, and apply nothing")
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "Format of --dry-run: yaml or json")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait until the coordinator is available")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait in all")
	return cmd
}

func (o *installOptions) run(ctx context.Context) error {
	if err := usage.OneOf("output", o.output, "yaml", "json"); err != nil {
		return err
	}
	if err := usage.OneOf("part", o.part, "", install.PartManagement, install.PartWorkload); err != nil {
		return err
	}
	if err := o.checkImages(); err != nil {
		return err
	}
	objects, pods, err := o.manifests()
	if err != nil {
		return err
	}
	if o.dryRun {
		return printDocuments(o.out, o.output, contents(objects))
	}
	cl, err := o.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	i := &install.Installer{Client: cl, Out: o.out}
	kube, err := o.kube()
	if err != nil {
		return err
	}
	if err := o.checkServer(kube); err != nil {
		return err
	}
	if o.part != install.PartWorkload {
		o.allowAPIPorts(ctx, kube, objects)
	}
	if err := o.checkForm(ctx, i, pods); err != nil {
		return err
	}
	if err := i.Apply(ctx, objects); err != nil {
		return err
	}
	if !o.wait {
		return nil
	}
	return i.AwaitAvailable(ctx, objects)
}

const (
	asSystemd   = "systemd"
	asDaemonSet = "daemonset"
)

// manifests are what is to be applied, and among them or not, those of the agents' DaemonSet.
func (o *installOptions) manifests() (objects, pods []*unstructured.Unstructured, err error) {
	if objects, err = install.Load(deploy.Manifests); err != nil {
		return nil, nil, err
	}
	if objects, err = install.Part(objects, o.part); err != nil {
		return nil, nil, err
	}
	if o.part != install.PartWorkload { // which runs no coordinator
		if err := install.SetImage(objects, o.image); err != nil {
			return nil, nil, err
		}
	}
	if pods, err = install.Load(deploy.DaemonSet); err != nil || o.agent != asDaemonSet {
		return objects, pods, err
	}
	if err := install.SetAgentImage(pods, o.pods); err != nil {
		return nil, nil, err
	}
	if err := install.IdentifyAgents(objects, "ServiceAccount"); err != nil {
		return nil, nil, err
	}
	return append(objects, pods...), pods, nil
}

// checkServer asks before anything is applied: an older API server takes some of the objects and refuses others.
func (o *installOptions) checkServer(kube kubernetes.Interface) error {
	info, err := kube.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server which version it is: %w", err)
	}
	if err := install.CheckServer(info.GitVersion, o.agent == asDaemonSet); err != nil {
		return refused{err.Error()}
	}
	return nil
}

// allowAPIPorts lets the coordinator reach the API server of its cluster where the NetworkPolicy as it is shipped does not.
func (o *installOptions) allowAPIPorts(ctx context.Context, kube kubernetes.Interface, objects []*unstructured.Unstructured) {
	ports, err := install.APIPorts(ctx, kube)
	if err != nil {
		fmt.Fprintf(o.err, "The NetworkPolicy of the coordinator stays as it is shipped, for an API server on port 443 or 6443: %v\n", err)
		return
	}
	for _, port := range install.AllowAPIPorts(objects, ports) {
		fmt.Fprintf(o.out, "the API server listens on port %d: the NetworkPolicy of the coordinator allows it\n", port)
	}
}

// checkForm: whoever updates a cluster with one form of the agents must not take their access away by leaving a flag out.
func (o *installOptions) checkForm(ctx context.Context, i *install.Installer, pods []*unstructured.Unstructured) error {
	if o.agent == asDaemonSet {
		return nil
	}
	there, err := i.DaemonSet(ctx, pods)
	if err != nil || there == nil {
		return err
	}
	return refused{"the agents of this cluster are a DaemonSet (refit-agent/refit-agent): update them with --agent daemonset --agent-image IMAGE; to go to systemd, `kubectl refit uninstall` first, which keeps Machines and pools"}
}

// checkImages refuses what no container runtime could pull, before anything is applied: a
// workload takes any text, and its pods would wait for ever.
func (o *installOptions) checkImages() error {
	if o.part != install.PartWorkload {
		if err := checkImage("coordinator", o.image); err != nil {
			return err
		}
	}
	if o.part != "" && o.agent == asDaemonSet {
		return usage.Errorf("--agent daemonset is for one cluster: with --part the agents are units of systemd, which join the management cluster (kubectl refit join-token)")
	}
	switch o.agent {
	case "", asSystemd:
		if o.pods != "" {
			return usage.Errorf("--agent-image is of --agent daemonset: agents of systemd are installed on the hosts")
		}
		return nil
	case asDaemonSet:
		return checkImage("agent", o.pods)
	}
	return usage.Errorf("--agent %q is none of systemd and daemonset", o.agent)
}

func checkImage(part, image string) error {
	if strings.TrimSpace(image) == "" {
		return usage.Errorf("--%s-image is required: name the image that the cluster's nodes can pull", part)
	}
	if _, err := name.ParseReference(image); err != nil {
		return usage.Errorf("--%s-image %q is no image name: %w: it looks like registry.example.com/refit-%s:v0.1.0", part, image, err, part)
	}
	return nil
}

func contents(objects []*unstructured.Unstructured) []map[string]any {
	out := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.Object)
	}
	return out
}
