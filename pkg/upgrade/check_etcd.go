package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// checkEtcd judges the move of a member of etcd that is not one of kubeadm's: it goes forward
// alone, by one minor at a time, and not before the others are near enough.
func (p *planner) checkEtcd() error {
	target := p.in.Assignment.Target.Etcd
	if target == "" {
		return nil
	}
	want, ok := ParseRelease(string(target))
	if !ok {
		return refuse(ReasonVersionInvalid, "the target's etcd version %q is no release version: write it like v3.6.8", target)
	}
	if err := p.checkEtcdForm(); err != nil {
		return err
	}
	now, err := p.etcdRunning()
	if err != nil {
		return err
	}
	p.want.etcd, p.want.etcdNow = want, now
	return p.judgeEtcd()
}

// checkEtcdForm sees that the host has a member that Refit moves.
func (p *planner) checkEtcdForm() error {
	f := p.in.Facts
	switch {
	case !slices.Contains(p.in.Spec.Roles, v1alpha1.RoleEtcd):
		return refuse(ReasonRoleMismatch, "the target has an etcd version but spec.roles has no Etcd")
	case slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane):
		return refuse(ReasonEtcdUnsupported, "the target moves etcd of a control plane to %s: only etcd on machines without a control plane is moved for itself, and a stacked one moves with versions.controlPlane; remove spec.versions.etcd", p.in.Assignment.Target.Etcd)
	case f.EtcdUnit != nil:
		return nil
	case f.Control != nil && (f.Control.Etcd != "" || f.Control.Manifests["etcd"] != ""):
		return refuse(ReasonEtcdUnsupported, "etcd of this host is a static pod of its kubelet, and one without a control plane is not moved yet: only a package with the unit %s is; remove spec.versions.etcd", UnitEtcd)
	case p.probeFailed(fieldEtcdUnit) != "":
		return wait(ReasonVersionUnknown, "it could not be found out whether this host runs etcd%s, and spec.roles says so: see that systemd answers", p.problem(fieldEtcdUnit))
	}
	return refuse(ReasonRoleMismatch, "this host runs no etcd (it has no unit %s), but spec.roles says Etcd: correct spec.roles, or set etcd up first", UnitEtcd)
}

// etcdRunning is what the member on this host says that it runs: nothing else counts.
func (p *planner) etcdRunning() (Version, error) {
	text := p.in.Facts.etcdVersion()
	now, ok := ParseRuntime(text)
	if ok {
		return now.Version, nil
	}
	return Version{}, wait(ReasonVersionUnknown, "the member of etcd on this host does not say its version%s: nothing is planned on a guess; see that it runs and answers (systemctl status %s)", p.problem(fieldEtcd), UnitEtcd)
}

// judgeEtcd says what is to be done, and refuses what etcd does not do.
func (p *planner) judgeEtcd() error {
	want, now := p.want.etcd, p.want.etcdNow
	pkg, packaged := p.etcdPackage()
	disk := now
	if u := p.in.Facts.EtcdUnit; u != nil {
		installed, ok := ParseRuntime(u.Installed)
		if !ok {
			return wait(ReasonVersionUnknown, "the version of the etcd that %s would start is %q, which is no version%s: nothing is planned on a guess", u.Unit, u.Installed, p.problem(fieldEtcdInstalled))
		}
		disk = later(now, installed.Version)
		if packaged && !carries(pkg.Version, installed.Version.Upstream()) {
			packaged = false // the unit starts another program than the package's
		}
	}
	p.want.etcdChanges = !now.Equal(want) || !disk.Equal(want)
	if p.want.etcdChanges && !packaged && !p.in.Estimate {
		return p.notPackaged("etcd %s runs on this host and is not of one of the packages %s: Refit moves packages, and leaves an etcd that was installed otherwise alone", now.Raw(), strings.Join(etcdPackages[:2], ", "))
	}
	if blocked := etcdStep(disk, now, want); blocked != nil {
		return blocked
	}
	return p.etcdTogether()
}

// etcdStep refuses what no member of etcd does: to go back, also where only its package has gone
// ahead, and to leave a minor out.
func etcdStep(disk, now, want Version) *Blocked {
	switch {
	case want.LessThan(disk):
		return refuse(ReasonDowngradeRefused, "etcd of this host is at %s and the target is %s: etcd never goes back, since no older one reads its data; set spec.versions.etcd to %s or newer", disk.Raw(), want.Raw(), disk)
	case want.MinorsAhead(now) > 1:
		return refuse(ReasonEtcdMinorSkipped, "etcd of this host runs %s and the target is %s: etcd moves its data one minor at a time; the hop in between is missing from the assignment", now.Raw(), want.Raw())
	}
	return etcdFloorOf(now, want)
}

// etcdFloorOf refuses to bring 3.6 to data whose membership an etcd 3.5 may have left wrong.
func etcdFloorOf(now, want Version) *Blocked {
	next, _ := ParseRelease(etcdNextMinor)
	if want.LessThan(next) || !etcdTooOld(now) {
		return nil
	}
	return refuse(FindingEtcdTooOld, "etcd of this host runs %s, and %s may not start on what etcd before %s has written of its members: set spec.versions.etcd to the newest patch of v3.5 first, on every member, then to this", now.Raw(), want.Raw(), etcdFloor36)
}

// etcdTogether waits until no member is left more than one minor behind: it could not follow.
func (p *planner) etcdTogether() error {
	if p.in.Facts.Etcd == nil {
		return nil
	}
	var behind, old []string
	next, _ := ParseRelease(etcdNextMinor)
	for _, m := range p.in.Facts.Etcd.Members {
		have, ok := ParseRuntime(m.Version)
		switch {
		case !ok || m.ID == p.in.Facts.Etcd.Member: // one that does not say is judged as a member that is not well
		case p.want.etcd.MinorsAhead(have.Version) > 1:
			behind = append(behind, m.Label()+" ("+m.Version+")")
		case !p.want.etcd.LessThan(next) && etcdTooOld(have.Version):
			old = append(old, m.Label()+" ("+m.Version+")")
		}
	}
	switch {
	case !p.want.etcdChanges:
		return nil
	case len(behind) > 0:
		return wait(ReasonWaitingForEtcd, "etcd of this host waits before it goes to %s: %s are more than one minor older, and all must be within one minor of each other", p.want.etcd.Raw(), strings.Join(behind, ", "))
	case len(old) > 0:
		return wait(FindingEtcdTooOld, "etcd of this host waits before it goes to %s: no member of the cluster goes there before all run %s or newer, and older ones are %s", p.want.etcd.Raw(), etcdFloor36, strings.Join(old, ", "))
	}
	return nil
}

// etcdPackage is the installed package that has the server in it.
func (p *planner) etcdPackage() (InstalledPackage, bool) {
	for _, name := range etcdPackages[:2] {
		if pkg, ok := p.installed[name]; ok {
			return pkg, true
		}
	}
	return InstalledPackage{}, false
}

// etcdVersion is what the member on this host runs: as the member says, unless it is one of a
// control plane, which goes by its image.
func (f *Facts) etcdVersion() string {
	if f.Control != nil && f.Control.Etcd != "" {
		return f.Control.Etcd
	}
	if f.Etcd != nil {
		if own := f.Etcd.Own(); own != nil && own.Version != "" {
			return own.Version
		}
	}
	if f.EtcdUnit != nil {
		return v1alpha1.Unknown
	}
	return ""
}
