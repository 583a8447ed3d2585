package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/binding"
	"github.com/refit-dev/refit/agent/credential"
	"github.com/refit-dev/refit/agent/host/install"
	"github.com/refit-dev/refit/agent/host/systemd"
)

// podTokenLife is short: the pod asks with its own token, which the kubelet keeps fresh.
const podTokenLife = time.Hour

// Pod is an agent that runs as a pod of the DaemonSet, with named directories of its host.
type Pod struct {
	// Node that it runs on, which is its Machine's name.
	Node string
	// Namespace of the Machine.
	Namespace string
	// TokenFile is where the host's token is kept, in memory.
	TokenFile string
	// Executor in the image, which is installed on the host.
	Executor string
}

// RunPod installs the executor on the host and works like Run, until the context ends.
func RunPod(ctx context.Context, pod Pod) error {
	if pod.Node == "" {
		return errors.New("the name of the node is not known: the DaemonSet of deploy/daemonset sets it as NODE_NAME")
	}
	paths := Paths{}.withDefaults()
	config := agent.Config{Namespace: pod.Namespace, Machine: pod.Node, Executor: install.Program}
	return run(ctx, config, paths, func(ctx context.Context) (*session, error) {
		if err := prepareHost(ctx, paths, pod.Executor); err != nil {
			return nil, err
		}
		return pod.connect(ctx, paths)
	})
}

// prepareHost makes the host what a package would have made it.
func prepareHost(ctx context.Context, paths Paths, executor string) error {
	for _, dir := range []string{paths.State, paths.Run} { // the kubelet makes them open to all
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("closing a directory to others: %w", err)
		}
	}
	units := systemd.New()
	defer units.Close()
	changed, err := install.Host{Units: units}.Install(ctx, executor)
	if err != nil {
		return err
	}
	if changed {
		logr.FromContextOrDiscard(ctx).Info("Installed the executor on the host", "program", install.Program, "unit", install.ResumeUnit)
	}
	return nil
}

// connect gets the host's token by that of the pod, for as long as it takes.
func (p Pod) connect(ctx context.Context, paths Paths) (*session, error) {
	own, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server from inside a pod: %w", err)
	}
	place, err := binding.Of(own, p.Namespace, p.Node)
	if err != nil {
		return nil, err
	}
	if err := binding.Check(paths.State, place); err != nil {
		return nil, err
	}
	source, err := credential.NewRequester(own, p.Namespace, p.Node, p.Node, podTokenLife)
	if err != nil {
		return nil, err
	}
	renewer := &credential.Renewer{File: p.TokenFile, Source: source}
	if err := renewer.First(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // the end of the program is no fault of the credential
		}
		return nil, err
	}
	host := rest.AnonymousClientConfig(own)
	host.BearerTokenFile = p.TokenFile
	return newSession(ctx, host, paths, p.Namespace, p.Node, renewer)
}
