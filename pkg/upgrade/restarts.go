package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// onDisk is a version of a program that its next start may run.
type onDisk struct {
	version Version
	says    string
}

// kubeletOnDisk are the kubelets that a restart may start, the likeliest first: the program,
// and the package that is to have brought it.
func (f *Facts) kubeletOnDisk() []onDisk {
	var found []onDisk
	if k := f.Kubelet; k != nil {
		if v, ok := ParseKubernetes(k.Installed); ok {
			found = append(found, onDisk{v, "kubelet " + k.Installed})
		}
	}
	return append(found, f.packaged([]string{packageKubelet})...)
}

// runtimeOnDisk are the container runtimes that a restart may start.
func (f *Facts) runtimeOnDisk() []onDisk {
	var found []onDisk
	r := f.Runtime
	if r == nil {
		return nil
	}
	if v, ok := ParseRuntime(r.Installed); ok {
		found = append(found, onDisk{v.Version, r.Name + " " + r.Installed})
	}
	return append(found, f.packaged(runtimePackages[v1alpha1.RuntimeName(r.Name)])...)
}

func (f *Facts) packaged(names []string) []onDisk {
	var found []onDisk
	for _, pkg := range f.Packages.Installed {
		if slices.Contains(names, pkg.Name) && pkg.installed() && packageUpstream(pkg.Version).Known() {
			found = append(found, onDisk{packageUpstream(pkg.Version), "package " + pkg.Name + " " + pkg.Version})
		}
	}
	return found
}

// restarts says that steps start the program of a unit anew, which then runs what is on disk.
func restarts(steps []Step, unit string) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return s.Kind == StepReboot || s.Kind == StepRestartUnit && s.Unit == unit
	})
}

// brings says that steps install one of these packages, so that it is not what is on disk now that starts.
func brings(steps []Step, names ...string) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return s.Kind == StepInstallPackages && slices.ContainsFunc(s.Packages, func(c PackageChange) bool { return slices.Contains(names, c.Name) })
	})
}

// pendingRestarts judges the restarts of a plan that start something else than what runs,
// without having brought it: no check of a target has seen that version. What is of the
// same minor and against no wish is expected; anything else is refused.
func (p *planner) pendingRestarts() error {
	if err := p.kubeletStarts(); err != nil {
		return err
	}
	if err := p.runtimeStarts(); err != nil {
		return err
	}
	return p.etcdStarts()
}

// etcdStarts judges a restart of the member of this host that brings it nothing: what is on disk
// runs then, and another minor is for a plan of its own.
func (p *planner) etcdStarts() error {
	u := p.in.Facts.EtcdUnit
	if u == nil || p.want.etcdChanges || !p.etcdHere() || !restarts(p.steps, p.etcdUnit()) {
		return nil
	}
	running, known := ParseRuntime(p.in.Facts.etcdVersion())
	disk, ok := ParseRuntime(u.Installed)
	switch {
	case !known || running.Version.Equal(disk.Version):
		return nil // a member that says nothing is judged as such
	case !ok:
		return wait(ReasonVersionUnknown, "etcd of this host runs %s, and it is not known what %s would start%s: see which program %s starts", running.Version.Raw(), p.restartWords(), p.problem(fieldEtcdInstalled), u.Unit)
	case disk.Version.SameMinor(running.Version) && running.Version.LessThan(disk.Version):
		p.starts.etcd = disk.Version.Upstream()
		return nil
	}
	return wait(ReasonRestartPending, "etcd of this host runs %s, but %s is on disk, and %s would start it: bring its package back to %s on the host, or set spec.versions.etcd to %s", running.Version.Raw(), disk.Version.Raw(), p.restartWords(), running.Version.Upstream(), disk.Version)
}

func (p *planner) kubeletStarts() error {
	k := p.in.Facts.Kubelet
	certain := restarts(p.steps, p.kubeletUnit())
	if k == nil || p.want.kubeletChanges || !certain && !brings(p.steps, packageKubeadm) {
		return nil
	}
	running, _ := ParseKubernetes(k.Running)
	var judged []Version
	for _, disk := range p.in.Facts.kubeletOnDisk() {
		if disk.version.Equal(running) || slices.ContainsFunc(judged, disk.version.Equal) {
			continue
		}
		judged = append(judged, disk.version)
		if err := p.startWithinSkew(running, disk); err != nil {
			return err
		}
		if !running.Known() || !certain {
			continue // it is down, and comes back as what it was last; or it may not be restarted at all
		}
		if err := p.startAsWished("kubelet", "spec.versions.kubelet", p.wishedKubelet(), running, disk); err != nil {
			return err
		}
		p.starts.kubelet = p.in.Facts.kubeletOnDisk()[0].version.String()
	}
	return nil
}

func (p *planner) startWithinSkew(running Version, disk onDisk) error {
	oldest, newest, err := p.apiServers(disk.version)
	if err != nil || !oldest.Known() {
		return err
	}
	now := "runs " + running.Raw()
	if !running.Known() {
		running, now = oldest, "does not run"
	}
	back := "bring package kubelet to " + running.String() + " on the host, and hold it there"
	switch behind := newest.MinorsAhead(disk.version); {
	case disk.version.MinorsAhead(oldest) > 0:
		return wait(ReasonSkewViolated, "the kubelet of this host %s, but %s is on disk, and %s would start it: it is newer than the oldest API server %s, which no kubelet may be; %s, or first bring the control plane to %s, with spec.versions.controlPlane of its Machines", now, disk.says, p.restartWords(), oldest.Raw(), back, disk.version.Minor())
	case behind > kubeletSkew(disk.version):
		return wait(ReasonSkewViolated, "the kubelet of this host %s, but %s is on disk, and %s would start it: it is %d minors behind the newest API server %s, and at most %d are allowed; %s", now, disk.says, p.restartWords(), behind, newest.Raw(), kubeletSkew(disk.version), back)
	}
	return nil
}

func (p *planner) runtimeStarts() error {
	r := p.in.Facts.Runtime
	if r == nil || p.want.runtimeChanges || !restarts(p.steps, p.runtimeUnit()) {
		return nil
	}
	running, ok := ParseRuntime(r.Running)
	if !ok { // the finders say what they need to know of it
		return nil
	}
	var judged []Version
	for _, disk := range p.in.Facts.runtimeOnDisk() {
		if disk.version.Equal(running.Version) || slices.ContainsFunc(judged, disk.version.Equal) {
			continue
		}
		judged = append(judged, disk.version)
		if err := p.startAsWished(r.Name, "spec.versions.containerRuntime.version", p.wishedRuntime(), running.Version, disk); err != nil {
			return err
		}
		p.starts.runtime = p.in.Facts.runtimeOnDisk()[0].version.Upstream()
	}
	return nil
}

// startAsWished refuses to start what spec does not ask for, or what moves by a minor
// without any of the checks and steps of such a move.
func (p *planner) startAsWished(program, field string, wish, running Version, disk onDisk) error {
	if disk.version.SameMinor(running) && (!wish.Known() || wish.Equal(disk.version)) {
		p.find(warning(FindingRestartPending, "%s runs %s, and %s is on disk: %s starts it", program, running.Raw(), disk.says, p.restartWords()))
		return nil
	}
	back := running
	if wish.Known() && wish.SameMinor(running) {
		back = wish
	}
	return wait(ReasonRestartPending, "%s of this host runs %s, but %s is on disk, and %s would start it, though this plan is for nothing of the kind: bring the package back to %s on the host, and hold it there, or set %s to %s, so that it is planned with all that it needs", program, running.Raw(), disk.says, p.restartWords(), back.Upstream(), field, disk.version)
}

// restartWords say how the plan starts programs anew. Packages of kubeadm may do so by
// themselves (https://github.com/kubernetes/release/issues/2412).
func (p *planner) restartWords() string {
	if !p.restarted {
		return "the package kubeadm of this plan"
	}
	if slices.ContainsFunc(p.steps, func(s Step) bool { return s.Kind == StepReboot }) {
		return "the reboot of this plan"
	}
	return "the restart of this plan"
}

func (p *planner) wishedKubelet() Version {
	if p.in.Spec.Versions == nil {
		return Version{}
	}
	v, _ := ParseKubernetes(string(p.in.Spec.Versions.Kubelet))
	return v
}

func (p *planner) wishedRuntime() Version {
	if p.in.Spec.Versions == nil || p.in.Spec.Versions.ContainerRuntime == nil {
		return Version{}
	}
	v, _ := ParseRelease(string(p.in.Spec.Versions.ContainerRuntime.Version))
	return v
}

// StartsOther says what the plan's restarts would start now instead of what it expects at
// its end: a package that somebody else has brought since the plan was made. "" says nothing.
func (p *Plan) StartsOther(f Facts) string {
	last := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind == StepVerify && s.Expect != nil })
	if last < 0 {
		return ""
	}
	want := p.Steps[last].Expect
	kubelet, _ := ParseKubernetes(want.Kubelet)
	runtime, _ := ParseRuntime(want.Runtime)
	units := &planner{in: PlanInput{Facts: f}}
	other := p.startsOther(units.kubeletUnit(), kubelet, f.kubeletOnDisk(), packageKubelet)
	if f.Runtime != nil {
		other = append(other, p.startsOther(units.runtimeUnit(), runtime.Version, f.runtimeOnDisk(), runtimePackages[v1alpha1.RuntimeName(f.Runtime.Name)]...)...)
	}
	return strings.Join(other, "; ")
}

func (p *Plan) startsOther(unit string, want Version, disk []onDisk, packages ...string) []string {
	if !want.Known() || !restarts(p.Steps, unit) || brings(p.Steps, packages...) {
		return nil
	}
	if len(disk) == 0 || disk[0].version.Equal(want) {
		return nil
	}
	return []string{fmt.Sprintf("%s is on disk, and %s was to be started by %s", disk[0].says, want.Raw(), unit)}
}
