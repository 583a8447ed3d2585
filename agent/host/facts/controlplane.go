package facts

import (
	"context"
	"errors"

	"github.com/refit-dev/refit/agent/host/kubeadm"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// controlPlane is decided by the static pod manifests, not by a label. The API server
// speaks for itself; the others go by the image that really runs.
func (g *gathering) controlPlane(ctx context.Context) error {
	manifests, err := g.Control.Manifests()
	if len(manifests) == 0 && !g.Control.Exists() {
		return err
	}
	gates, gatesErr := g.Control.FeatureGates()
	g.problem("controlPlane.manifests", errors.Join(err, gatesErr))
	unfinished, err := kubeadm.New(g.Root).Unfinished(ctx)
	g.problem("controlPlane.unfinished", err)
	c := &upgrade.ControlFacts{
		Manifests:         manifests,
		FeatureGates:      gates,
		ControllerManager: g.runningImage("kube-controller-manager"),
		Scheduler:         g.runningImage("kube-scheduler"),
		Etcd:              g.runningImage("etcd"),
		Unfinished:        unfinished,
	}
	g.facts.Control = c
	if !g.Control.Exists() {
		return nil // an etcd-only host
	}
	if _, named := manifests["kube-apiserver"]; !named {
		manifests["kube-apiserver"] = "" // it is there, whatever is in it
	}
	c.APIServer, err = g.Control.Version(ctx)
	if err != nil {
		return err
	}
	c.DeprecatedAPIs, err = g.Control.DeprecatedAPIs(ctx)
	g.problem("controlPlane.deprecatedAPIs", err)
	return nil
}

// staticPods are all that the kubelet reads, on any host with a kubelet.
func (g *gathering) staticPods(context.Context) error {
	dir := ""
	if k := g.facts.Kubelet; k != nil {
		dir, _ = k.Configuration["staticPodPath"].(string)
	}
	var err error
	g.facts.StaticPods, err = g.Control.StaticPods(dir)
	return err
}

func (g *gathering) kubeProxy(context.Context) error {
	g.facts.KubeProxy = g.runningImage("kube-proxy")
	return nil
}
