// Package facts asks a host what runs on it. Every probe stands alone: one that
// fails becomes a problem of its field, and the rest still comes. Nothing is filled
// in by default, and a version on disk is never taken for one that runs.
package facts

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/controlplane"
	"github.com/refit-dev/refit/agent/host/kubelet"
	"github.com/refit-dev/refit/agent/host/osrelease"
	"github.com/refit-dev/refit/agent/host/packages"
	"github.com/refit-dev/refit/agent/host/runtime"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// probeTimeout bounds one probe: a hanging daemon must not hide the other facts.
const probeTimeout = 45 * time.Second

// Packages that Refit looks at on every host, besides those of the spec.
var Packages = []string{
	"kubelet", "kubeadm", "kubectl", "kubernetes-cni", "cri-tools",
	"containerd", "containerd.io", "runc", "cri-o",
	"etcd", "etcd-server", "etcd-client",
}

// Units tells the state of units.
type Units interface {
	Status(ctx context.Context, unit string) (systemd.Status, error)
}

// Runtime is what the probes ask of the container runtime.
type Runtime interface {
	Version(ctx context.Context) (name, version string, err error)
	Info(ctx context.Context) (runtime.Info, error)
	Containers(ctx context.Context) ([]runtime.Container, error)
	Sandboxes(ctx context.Context) ([]string, error)
}

// Etcd tells how the members of this host's etcd are; nil facts where there is none.
type Etcd interface {
	Look(ctx context.Context) (*upgrade.EtcdFacts, error)
}

// Prober asks the host under Root.
type Prober struct {
	Root   string
	Runner command.Runner
	Units  Units
	// Manager of the packages of a system under a root.
	Manager func(root string, release osrelease.Release) PackageManager
	Runtime func(endpoint string) Runtime
	Control *controlplane.ControlPlane
	// Etcd is asked where it is set: its client is large, and not every program that looks at hosts has it.
	Etcd Etcd
	Now  func() time.Time
	// Owner of the host's policy: root.
	Owner uint32
	// Indexes asks also for what the host's package indexes offer.
	Indexes bool
}

// New returns the prober of the host under root.
func New(root string, units Units) *Prober {
	return &Prober{
		Root: root, Runner: command.Exec{}, Units: units,
		Manager: func(root string, release osrelease.Release) PackageManager { return packages.For(root, release) },
		Runtime: func(endpoint string) Runtime { return runtime.New(endpoint) },
		Control: controlplane.New(root), Now: time.Now,
	}
}

func (p *Prober) path(elements ...string) string {
	return filepath.Join(append([]string{p.Root}, elements...)...)
}

// gathering is one run of all probes.
type gathering struct {
	*Prober
	facts  upgrade.Facts
	extra  []string // packages of the spec
	client Runtime  // once the runtime probe has found it
	// containers that run, once listed
	containers []runtime.Container
}

// probe fills one field of the facts.
type probe struct {
	field string
	run   func(*gathering, context.Context) error
}

// probes in order: later ones use what earlier ones found.
var probes = []probe{
	{"host", (*gathering).host},
	{"os", (*gathering).os},
	{"kubelet", (*gathering).kubelet},
	{"kubeadm", (*gathering).kubeadm},
	{"containerRuntime", (*gathering).runtime},
	{"containers", (*gathering).listContainers},
	{"controlPlane", (*gathering).controlPlane},
	{"etcdUnit", (*gathering).etcdUnit},
	{"etcd", (*gathering).etcd},
	{"staticPods", (*gathering).staticPods},
	{"kubeProxy", (*gathering).kubeProxy},
	{"node", (*gathering).node},
	{"packages", (*gathering).packages},
	{"packages.sources", (*gathering).sources},
	{"packages.indexes", (*gathering).indexes},
	{"reboot", (*gathering).reboot},
	{"mounts", (*gathering).mounts},
	{"certificates", (*gathering).certificates},
	{"conflictingManagers", (*gathering).conflicts},
	{"hold", (*gathering).hold},
	{"policy", (*gathering).policy},
	{"managedFiles", (*gathering).managedFiles},
}

// Facts asks everything. The error is only that of a context that ended.
func (p *Prober) Facts(ctx context.Context, extraPackages []string) (upgrade.Facts, error) {
	g := &gathering{Prober: p, extra: extraPackages}
	g.facts.APIVersion, g.facts.Kind = upgrade.FactsAPIVersion, "Facts"
	for _, probe := range probes {
		if err := g.ask(ctx, probe); err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("A probe failed", "field", probe.field, "reason", err.Error())
			g.facts.Problems = append(g.facts.Problems, upgrade.Problem{Field: probe.field, Message: err.Error()})
		}
		if ctx.Err() != nil {
			return g.facts, fmt.Errorf("gathering facts, stopped at %s: %w", probe.field, context.Cause(ctx))
		}
	}
	return g.facts, nil
}

// ask keeps even a probe that panics, on input that nobody thought of, from hiding the others.
func (g *gathering) ask(ctx context.Context, p probe) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the probe failed: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p.run(g, ctx)
}

// problem records a fault of one part of a probe, whose other parts are fine.
func (g *gathering) problem(field string, err error) {
	if err != nil {
		g.facts.Problems = append(g.facts.Problems, upgrade.Problem{Field: field, Message: err.Error()})
	}
}

// watched are the packages to look at.
func (g *gathering) watched() []string {
	names := append(slices.Clone(Packages), g.extra...)
	slices.Sort(names)
	return slices.Compact(names)
}

var _ Units = (*systemd.Manager)(nil)
var _ kubelet.Units = (*systemd.Manager)(nil)
