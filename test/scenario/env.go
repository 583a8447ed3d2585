package scenario

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-logr/logr"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// Namespaces of an installation.
const (
	MachineNamespace = "refit"
	SystemNamespace  = "refit-system"
)

// Env is a fleet, its cluster, and the programs under test.
type Env struct {
	Fleet  *testfleet.Fleet
	Config *rest.Config
	Kube   kubernetes.Interface
	Client client.WithWatch
	// Root of the checkout, and the directory with the built programs in it.
	Root, Bin string
	Out       io.Writer
}

// Open connects to the cluster of a fleet that is up.
func Open(f *testfleet.Fleet, out io.Writer) (*Env, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the fleet's kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = 50, 100
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	scheme := k8sruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Kubernetes kinds: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Refit kinds: %w", err)
	}
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard()) // what a client of a test logs is of no use to anybody
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	return &Env{Fleet: f, Config: cfg, Kube: kube, Client: c, Root: root, Bin: filepath.Join(root, "bin"), Out: out}, nil
}

// Say prints one line for people.
func (e *Env) Say(format string, args ...any) {
	fmt.Fprintf(e.Out, format+"\n", args...)
}
