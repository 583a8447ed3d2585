package main

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
)

// defaultNamespace holds Machines unless -n says otherwise.
const defaultNamespace = "refit"

type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is what every subcommand shares.
type command struct {
	streams
	flags *genericclioptions.ConfigFlags
	// workload is the kubeconfig of the cluster that has the Nodes; "" where it is the same one.
	workload string
}

// What client-go tries again would be told in its own words, between our lines. It is
// silenced before anything runs: klog's logger must not be set while something may log.
func init() { klog.SetLogger(logr.Discard()) }

// kinds are those that the commands read and write.
var kinds = newKinds()

func newKinds() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme)) // it fails only where two of our own types have one name
	}
	return scheme
}

func newRoot(s streams) *cobra.Command {
	c := &command{streams: s, flags: genericclioptions.NewConfigFlags(true)}
	root := &cobra.Command{
		Use:           "kubectl-refit",
		Short:         "Keep a fixed fleet of machines at declared versions, in place",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl refit"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	c.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().Lookup("namespace").Usage = "Namespace of the Machines (default " + defaultNamespace + ")"
	root.PersistentFlags().StringVar(&c.workload, "workload-kubeconfig", "", workloadUsage)
	root.AddCommand(newPause(c), newResume(c), newAbort(c), newRetry(c), newNext(c), newForget(c), newUndo(c), newHistory(c), newRelease(c), newWhy(c), newWatch(c), newLogs(c), newDiagnose(c))
	root.AddCommand(newAdopt(c), newInstall(c), newUninstall(c), newStatus(c), newPlan(c), newSimulate(c), newForecast(c), newDrain(c), newDashboard(c), newJoinToken(c), newVersion(c))
	usage.Strict(root)
	return root
}

// namespace is what -n says; the context's own namespace is that of workloads, and not asked.
func (c *command) namespace() string {
	if c.flags.Namespace != nil && *c.flags.Namespace != "" {
		return *c.flags.Namespace
	}
	return defaultNamespace
}

func (c *command) client() (client.Client, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	return connect(config)
}

func connect(config *rest.Config) (client.Client, error) {
	config.QPS, config.Burst = 50, 100
	log.SetLogger(logr.Discard()) // the library would complain in the middle of a long wait that nobody set one
	cl, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return cl, nil
}
