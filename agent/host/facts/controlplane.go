package facts

import (
	"context"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// controlPlane is decided by the static pod manifests, not by a label. The API server
// speaks for itself; the others go by the image that really runs.
func (g *gathering) controlPlane(ctx context.Context) error {
	manifests, err := g.Control.Manifests()
	if len(manifests) == 0 {
		return err
	}
	g.problem("controlPlane.manifests", err)
	c := &upgrade.ControlFacts{
		Manifests:         manifests,
		ControllerManager: g.runningImage("kube-controller-manager"),
		Scheduler:         g.runningImage("kube-scheduler"),
		Etcd:              g.runningImage("etcd"),
	}
	g.facts.Control = c
	if !g.Control.Exists() {
		return nil // an etcd-only host
	}
	c.APIServer, err = g.Control.Version(ctx)
	return err
}

func (g *gathering) kubeProxy(context.Context) error {
	g.facts.KubeProxy = g.runningImage("kube-proxy")
	return nil
}
