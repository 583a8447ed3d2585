package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/executor"
	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/agent/host/boot"
	"github.com/refit-dev/refit/agent/host/controlplane"
	"github.com/refit-dev/refit/agent/host/etcd"
	"github.com/refit-dev/refit/agent/host/etcdunit"
	"github.com/refit-dev/refit/agent/host/facts"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/hooks"
	"github.com/refit-dev/refit/agent/host/kubeadm"
	"github.com/refit-dev/refit/agent/host/kubelet"
	"github.com/refit-dev/refit/agent/host/packages"
	"github.com/refit-dev/refit/agent/host/policy"
	"github.com/refit-dev/refit/agent/host/runtime"
	"github.com/refit-dev/refit/agent/host/systemd"
)

const stateDir = "/var/lib/refit"

func (o *options) stateDir() string { return filepath.Join(o.root, stateDir) }

// machineID is "" on a host that has none yet.
func (o *options) machineID(ctx context.Context) string {
	id, err := os.ReadFile(filepath.Join(o.root, "etc/machine-id"))
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Whose state is on this host cannot be told")
	}
	return strings.TrimSpace(string(id))
}

// runtime is that of this host. A host without one has no step that needs it; a step
// that does gets the error then.
func (o *options) runtime(ctx context.Context) *runtime.Runtime {
	r, err := runtime.OfHost(o.root)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "No container runtime was found")
	}
	return r
}

// host wires the real host together.
func (o *options) host(ctx context.Context, operation string) steps.Host {
	manager := systemd.New()
	packaged := packages.Of(o.root)
	admin := kubeadm.New(o.root)
	admin.LogName = operation
	cri, control := o.runtime(ctx), controlplane.New(o.root)
	return steps.Host{
		Packages: packaged, Sources: packaged, Backups: packaged,
		Units: manager, Boot: boot.Boot{Root: o.root, Rebooter: manager},
		Runtime: cri, Kubeadm: admin, Kubelet: kubelet.New(o.root, manager),
		ControlPlane: control, StaticPods: controlplane.Pods{ControlPlane: control, Runtime: cri}, Etcd: o.etcd(manager), Facts: o.prober(manager),
		Files: files.Rooted{Root: o.root}, Hooks: hooks.New(o.root), Policy: policy.Policy{Root: o.root},
		StageDir: packaged.StageDir(), BackupDir: packaged.BackupDir(), HoldPath: facts.HoldPath,
	}
}

// etcd of this host, as a static pod or as a unit.
func (o *options) etcd(units etcdunit.Units) *etcd.Etcd {
	e := etcd.New(o.root)
	e.Unit = etcdunit.Finder(units, o.root)
	return e
}

// prober looks at this host; etcd is asked by this program only.
func (o *options) prober(units facts.Units) *facts.Prober {
	prober := facts.New(o.root, units)
	prober.Etcd = o.etcd(units)
	return prober
}

// stager stages plans on the real host.
func (o *options) stager(ctx context.Context) executor.Stager {
	cri := o.runtime(ctx)
	admin := kubeadm.New(o.root)
	admin.Proxy = cri.Proxy
	packaged := packages.Of(o.root)
	return executor.Stager{
		Packages: packaged, Images: cri, Kubeadm: admin, Hooks: hooks.New(o.root), Policy: policy.Policy{Root: o.root}, Sources: packaged,
	}
}

// executor runs operations on the real host.
func (o *options) executor(ctx context.Context, operation string) *executor.Executor {
	log := logr.FromContextOrDiscard(ctx)
	return executor.New(executor.Config{
		StateDir: o.stateDir(), MachineID: o.machineID(ctx), Host: o.host(ctx, operation),
		ReleaseUnits: func() {
			if err := systemd.NotifyReady(); err != nil {
				log.Error(err, "Units that wait for this one may wait longer")
			}
		},
	})
}

// alone takes the lock for work that shares state with an operation.
func (o *options) alone(ctx context.Context, do func() error) error {
	release, err := executor.AcquireLock(ctx, o.stateDir(), lockWait)
	if err != nil {
		return fmt.Errorf("waiting for the lock: %w", err)
	}
	defer release()
	return do()
}
