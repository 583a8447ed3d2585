package upgrade

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/hostpolicy"
)

// Package managers read more than names and versions in their operands, even after
// --: what does not look like one is refused here once more, since admission can be off.
var (
	packageNameShape    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9+])?$`)
	packageVersionShape = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.+~:^_-]*[A-Za-z0-9~])?$`)
)

// osPackagesSpec are the wished packages that ride on this hop.
func (p *planner) osPackagesSpec() []v1alpha1.Package {
	if !p.in.Assignment.Target.OS || p.in.Spec.OS == nil {
		return nil
	}
	return p.in.Spec.OS.Packages
}

// checkPackages refuses names and versions that no index could have, and packages that have their own field.
func (p *planner) checkPackages() error {
	for _, pkg := range p.osPackagesSpec() {
		if !packageNameShape.MatchString(pkg.Name) || pkg.Version != "" && !packageVersionShape.MatchString(pkg.Version) {
			return refuse(ReasonPackageInvalid, "spec.os.packages has %q at version %q, which is no package name or version: write both as the package manager prints them", pkg.Name, pkg.Version)
		}
		if p.in.Facts.Packages.Manager == "apt" && pkg.Name != strings.ToLower(pkg.Name) {
			return refuse(ReasonPackageInvalid, "spec.os.packages has %q, and no package of this host's system has a capital letter in its name: write it as the package manager prints it", pkg.Name)
		}
		if field := fieldOf(pkg.Name); field != "" {
			return refuse(ReasonPackageInvalid, "spec.os.packages names %s, which moves with %s: say its version there", pkg.Name, field)
		}
		if pkg.State == v1alpha1.PackageAbsent && !p.mayRemove(pkg) {
			return refuse(ReasonProtectedPackage, "spec.os.packages wants %s absent: this host needs it to be reached and kept up; remove the entry, or have the host's owner add it to packages.remove in %s", pkg.Name, hostpolicy.Path)
		}
	}
	return nil
}

// fieldOf is the field of spec.versions that a package moves with.
func fieldOf(name string) string {
	if slices.Contains(kubernetesPackages, name) {
		return "spec.versions.kubelet"
	}
	for _, names := range runtimePackages {
		if slices.Contains(names, name) {
			return "spec.versions.containerRuntime"
		}
	}
	if name == packageEtcdServer || name == packageEtcd { // the client is a tool that other hosts have too
		return "spec.versions.etcd"
	}
	return ""
}

// osPending says whether spec.os.packages has anything to do.
func (p *planner) osPending() bool {
	return p.order != nil && slices.ContainsFunc(p.osPackagesSpec(), p.packagePending)
}

func (p *planner) packagePending(pkg v1alpha1.Package) bool {
	have, installed := p.installed[pkg.Name]
	if pkg.State == v1alpha1.PackageAbsent {
		return installed
	}
	return !installed || !satisfies(p.order, have.Version, pkg.Version)
}

// osPackages brings the packages of spec.os to their versions, and the security updates with
// them, in one transaction.
func (p *planner) osPackages() error {
	var changes []PackageChange
	for _, pkg := range p.osPackagesSpec() {
		if !p.packagePending(pkg) {
			continue
		}
		change, err := p.osChange(pkg)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	changes = append(changes, p.securityChanges()...)
	if len(changes) == 0 {
		return nil
	}
	slices.SortFunc(changes, func(a, b PackageChange) int { return strings.Compare(a.Name, b.Name) })
	p.install(changes)
	p.startRefit(changes)
	return nil
}

// startRefit has Refit's own new agent started, and judged, before anything else is done. On a host that is planned
// for without a cluster no agent runs.
func (p *planner) startRefit(changes []PackageChange) {
	if !p.in.Standalone && slices.ContainsFunc(changes, func(c PackageChange) bool { return c.Name == packageRefit && c.From != "" && c.To != "" }) {
		p.add(Step{Kind: StepReloadUnits}, Step{Kind: StepRestartUnit, Unit: unitRefit})
	}
}

func (p *planner) osChange(pkg v1alpha1.Package) (PackageChange, error) {
	if pkg.State == v1alpha1.PackageAbsent {
		return PackageChange{Name: pkg.Name, From: p.installed[pkg.Name].Version, Held: slices.Contains(p.in.Facts.Packages.Holds, pkg.Name)}, nil
	}
	c, err := resolve(p.order, p.in.Candidates, pkg.Name, pkg.Version, func(have string) bool { return satisfies(p.order, have, pkg.Version) })
	if err != nil && p.in.Estimate {
		return p.estimated(pkg.Name, firstOf(pkg.Version, newestOffered)), nil
	}
	if err != nil {
		return PackageChange{}, err
	}
	change := p.change(c)
	if change.From != "" && p.order(change.To, change.From) < 0 {
		p.find(warning(FindingPackageDowngrade, "%s goes back from %s to %s, as spec.os.packages has it pinned", pkg.Name, change.From, change.To))
	}
	return change, nil
}

// newestOffered stands in an estimate for the version of a package that is wished for in any.
const newestOffered = "newest"

// rebootPending says whether the host waits for a reboot that spec asks for on this hop.
func (p *planner) rebootPending() bool {
	os := p.in.Spec.OS
	return p.in.Assignment.Target.OS && p.in.Facts.Reboot.Required && os != nil && os.Reboot == v1alpha1.RebootIfRequired && StayingReboot(p.in.Facts, p.in.Rebooted) == ""
}

// reboot ends the window with a reboot when the host asks for one, or what was installed needs one to run.
func (p *planner) reboot() error {
	reason := ""
	if p.rebootPending() {
		reason = hostsReboot(p.in.Facts)
	}
	for _, c := range p.changes {
		if reason == "" && c.To != "" && needsReboot(c.Name) {
			reason = c.Name + " " + c.To + " runs only after a reboot"
		}
	}
	if reason == "" {
		return nil
	}
	if RebootPolicyOf(p.in.Spec) == v1alpha1.RebootNever {
		p.find(warning(FindingRebootNotAllowed, "%s, but spec.os.reboot is Never", reason))
		return nil
	}
	p.add(Step{Kind: StepReboot, Reason: reason, Irreversible: "a reboot cannot be undone"})
	p.restarted = true
	p.disturb(v1alpha1.DisruptionReboot)
	return nil
}
