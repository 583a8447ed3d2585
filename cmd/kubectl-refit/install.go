package main

import (
	"context"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
	"github.com/refit-dev/refit/pkg/usage"
)

type installOptions struct {
	*command
	image   string
	part    string
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
coordinator is available. Installing again updates. The agents are installed on the
hosts, as a package or as files, not by this command.

Where Machines and Nodes are in two clusters, --part says which of them this one is:
management has the Machines and the coordinator, which reads the other's kubeconfig from
Secret refit-workload-kubeconfig; workload has the Nodes, and gets an account and roles only.`,
		Example: "  kubectl refit install --coordinator-image registry.example.com/refit-coordinator:v0.1.0\n  kubectl refit install --coordinator-image IMAGE --dry-run -o yaml > refit.yaml",
		Args:    usage.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.image, "coordinator-image", "", "Image of the coordinator (required)")
	cmd.Flags().StringVar(&o.part, "part", "", "With two clusters, what this one is: management or workload")
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
	objects, err := o.objects()
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
	if err := i.Apply(ctx, objects); err != nil {
		return err
	}
	if !o.wait {
		return nil
	}
	return i.AwaitAvailable(ctx, objects)
}

// objects are the manifests of the part; a workload cluster runs no coordinator, and needs no image.
func (o *installOptions) objects() ([]*unstructured.Unstructured, error) {
	if o.part != install.PartWorkload {
		if err := checkImage(o.image); err != nil {
			return nil, err
		}
	}
	objects, err := install.Load(deploy.Manifests)
	if err != nil {
		return nil, err
	}
	if objects, err = install.Part(objects, o.part); err != nil || o.part == install.PartWorkload {
		return objects, err
	}
	return objects, install.SetImage(objects, o.image)
}

// checkImage refuses what no container runtime could pull, before anything is applied: a
// Deployment takes any text, and its pods would wait for ever.
func checkImage(image string) error {
	if strings.TrimSpace(image) == "" {
		return usage.Errorf("--coordinator-image is required: name the image that the cluster's nodes can pull")
	}
	if _, err := name.ParseReference(image); err != nil {
		return usage.Errorf("--coordinator-image %q is no image name: %w: it looks like registry.example.com/refit-coordinator:v0.1.0", image, err)
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
