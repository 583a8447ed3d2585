package upgrade

import "strings"

func (p *planner) checkRuntime() error {
	r := p.in.Assignment.Target.ContainerRuntime
	if r == nil || r.Version == "" {
		return nil
	}
	want, ok := ParseRelease(string(r.Version))
	if !ok {
		return refuse(ReasonVersionInvalid, "the target's container runtime version %q is no release version: write it like 1.7.28", r.Version)
	}
	seen := p.in.Facts.Runtime
	if seen == nil || seen.Name == "" {
		return wait(ReasonVersionUnknown, "no container runtime answers on this host, so it is not known what %s %s would replace: see that the runtime runs", r.Name, r.Version)
	}
	if seen.Name != string(r.Name) {
		return refuse(ReasonRuntimeMismatch, "this host runs %s and spec wants %s: changing the container runtime in place is not supported; set spec.versions.containerRuntime.name to %s", seen.Name, r.Name, seen.Name)
	}
	last := seen.last()
	if last == "" { // what is installed says nothing of what containers run under
		return wait(ReasonVersionUnknown, "%s does not answer on this host, so it is not known what %s %s would replace: see that the runtime runs (systemctl status %s)", seen.Name, r.Name, r.Version, seen.Name)
	}
	now, ok := ParseRuntime(last)
	if !ok {
		return wait(ReasonVersionUnknown, "the version of %s on this host is %q, which is no version: nothing is planned on a guess; see that it runs and answers", seen.Name, last)
	}
	if seen.down() {
		if blocked := crossesStopped(seen.Name+" of this host", now.Version, want); blocked != nil {
			return blocked
		}
	}
	return p.judgeRuntime(want, now.Version)
}

func runtimeText(r *RuntimeFacts) []string {
	if r == nil {
		return nil
	}
	return []string{r.Running, r.Installed}
}

func (p *planner) judgeRuntime(want, now Version) error {
	name := p.in.Assignment.Target.ContainerRuntime.Name
	p.want.runtime, p.want.runtimeNow = want, now
	pkg, packaged := p.runtimePackage()
	p.want.runtimeChanges = !now.Equal(want) || p.in.Facts.Runtime.down() || packaged && !carries(pkg.Version, want.Upstream())
	if p.want.runtimeChanges && !packaged {
		return p.notPackaged("%s runs %s on this host but none of the packages %s is installed: Refit moves packages, and leaves a runtime that was installed otherwise alone", name, now.Raw(), strings.Join(runtimePackages[name], ", "))
	}
	newest := later(now, packageUpstream(pkg.Version))
	if !want.LessThan(newest) || p.recorded() {
		return nil
	}
	if !want.SameMinor(newest) {
		return refuse(ReasonDowngradeRefused, "%s is at %s on this host and the target is %s: a lower minor is refused, unless this host has run the whole target under Refit before, next to what else it runs now; set spec.versions.containerRuntime.version to %s or newer", name, newest.Raw(), want.Raw(), newest.Upstream())
	}
	p.find(warning(FindingRuntimeDowngrade, "%s goes back from %s to %s, as spec has it pinned", name, newest.Raw(), want.Raw()))
	return nil
}

// runtimePackage is the installed package of the wished runtime.
func (p *planner) runtimePackage() (InstalledPackage, bool) {
	for _, name := range runtimePackages[p.in.Assignment.Target.ContainerRuntime.Name] {
		if pkg, ok := p.installed[name]; ok {
			return pkg, true
		}
	}
	return InstalledPackage{}, false
}
