package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// UnitEtcd is the unit of an etcd that is a package.
const UnitEtcd = "etcd.service"

// fieldEtcdInstalled is the field of a Problem that leaves open what a restart would start.
const fieldEtcdInstalled = "etcdUnit.installed"

// etcdNoWayBack is why the packages of etcd stay as they are once they were installed: the member
// may have been started since, by this plan or by a boot.
const etcdNoWayBack = "etcd never goes back: no older one reads what a newer one has written"

// etcd moves the member of this host: its packages in one transaction, and one restart, right
// after it, so that the member is away once and not for long.
func (p *planner) etcd() error {
	if !p.want.etcdChanges {
		return nil
	}
	p.disturb(v1alpha1.DisruptionRestart)
	pkg, packaged := p.etcdPackage()
	if !packaged { // an estimate
		pkg.Name = packageEtcdServer
	}
	if !carries(pkg.Version, p.want.etcd.Upstream()) {
		names := slices.DeleteFunc(slices.Clone(etcdPackages), func(name string) bool {
			_, have := p.installed[name]
			return !have && name != pkg.Name
		})
		at := len(p.steps)
		if err := wantedBy("spec.versions.etcd", p.installUpstream(p.want.etcd, names...)); err != nil {
			return err
		}
		for i := range p.steps[at:] {
			if s := &p.steps[at+i]; s.Kind == StepInstallPackages {
				s.Irreversible = etcdNoWayBack
			}
		}
	}
	p.add(Step{Kind: StepReloadUnits}, Step{Kind: StepRestartUnit, Unit: p.etcdUnit()})
	return nil
}

func (p *planner) etcdUnit() string {
	if u := p.in.Facts.EtcdUnit; u != nil && u.Unit != "" {
		return u.Unit
	}
	return UnitEtcd
}

// etcdAlone says that the host has etcd and nothing of Kubernetes: no sandbox is started there to see whether it can be.
func (p *planner) etcdAlone() bool {
	return len(p.in.Spec.Roles) == 1 && p.in.Spec.Roles[0] == v1alpha1.RoleEtcd && p.in.Facts.Runtime == nil
}

// firstOfEtcd says that no other member runs the target yet: the host is the first of its hop.
func (p *planner) firstOfEtcd() bool {
	e := p.in.Facts.Etcd
	return e == nil || !slices.ContainsFunc(e.Members, func(m EtcdMemberFacts) bool {
		have, ok := ParseRuntime(m.Version)
		return ok && m.ID != e.Member && !have.Version.LessThan(p.want.etcd)
	})
}
