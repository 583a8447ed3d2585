package upgrade

import (
	"errors"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Units that a plan restarts where facts do not name another.
const (
	unitKubelet    = "kubelet.service"
	unitRefit      = "refit-agent.service"
	unitContainerd = "containerd.service"
	unitCRIO       = "crio.service"
)

// etcdForward is why a control-plane hop has no way back.
const etcdForward = "kubeadm moves etcd and the stored objects forward, and neither can be moved back"

// configForward is why kubeadm's work on a worker has no way back of its own.
const configForward = "kubeadm rewrites the kubelet's configuration for the new version; the old file is in its backup"

// sources points the host's package sources to the target's repositories, when packages move at all.
func (p *planner) sources() error {
	if !p.packagesMove() {
		return nil
	}
	_, changes, err := Sources(p.in.Facts, p.in.Assignment.Target, p.in.Spec)
	if err != nil && p.in.Estimate && len(p.in.Facts.Packages.Sources) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range changes {
		p.add(Step{Kind: StepSwitchSource, Source: &changes[i]})
	}
	return nil
}

func (p *planner) packagesMove() bool {
	return p.want.kubeletChanges || p.want.controlPlaneChanges || p.want.runtimeChanges || p.want.etcdChanges || p.osPending()
}

// kubeadm installs the kubeadm of the target and lets it upgrade the control plane, or a worker's kubelet configuration.
func (p *planner) kubeadm() error {
	version, needed := p.kubeadmTarget()
	if !needed {
		return nil
	}
	pkg, packaged := p.installed[packageKubeadm]
	if !packaged && !p.want.controlPlaneChanges {
		p.find(info(FindingKubeadmMissing, "this host has no package kubeadm: its kubelet is moved without kubeadm upgrade node"))
		return nil
	}
	if !packaged {
		return refuse(ReasonKubeadmMissing, "this host has no package kubeadm, and a control plane is upgraded by nothing else: install it at the version that runs, then retry")
	}
	if have := packageUpstream(pkg.Version); !have.SameMinor(version) || have.LessThan(version) {
		if err := wantedBy(p.kubeadmField(), p.installUpstream(version, packageKubeadm)); err != nil {
			return err
		}
	}
	if p.neverJoined() {
		p.find(info(FindingNotJoined, "this host has no /etc/kubernetes/kubelet.conf, so kubeadm has not joined it to a cluster and would find nothing to upgrade: its kubelet is moved without kubeadm upgrade node"))
		return nil
	}
	p.add(p.kubeadmStep(version))
	p.disturb(p.kubeadmDisruption())
	return nil
}

// neverJoined says that kubeadm upgrade node has nothing to work with: the facts of a host
// that was looked at have a node wherever there is a kubeconfig of kubeadm's.
func (p *planner) neverJoined() bool {
	return !p.want.controlPlaneChanges && !p.in.Estimate && p.in.Facts.Node == nil && p.probeFailed("node") == ""
}

// kubeadmTarget is the version kubeadm works towards, and whether it has work. A
// control-plane host whose kubelet follows later had kubeadm's work in its earlier hop.
func (p *planner) kubeadmTarget() (Version, bool) {
	switch {
	case p.want.controlPlaneChanges:
		return p.want.controlPlane, true
	case p.want.kubeletChanges && !slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane):
		return p.want.kubelet, !p.want.kubeletNow.Equal(p.want.kubelet)
	}
	return Version{}, false
}

// kubeadmField is the field of the spec that leads to kubeadmTarget.
func (p *planner) kubeadmField() string {
	if p.want.controlPlaneChanges {
		return "spec.versions.controlPlane"
	}
	return p.kubeletField()
}

// kubeletField is what leads to the target's kubelet: the spec, or the API servers, which
// the kubelet catches up with where their next minor would leave it too far behind.
func (p *planner) kubeletField() string {
	if wish := p.wishedKubelet(); wish.Known() && !wish.Equal(p.want.kubelet) {
		return "the API servers, which cannot go on before this kubelet has caught up with them at " + p.want.kubelet.String() + " (on its way to spec.versions.kubelet " + wish.String() + ")"
	}
	return "spec.versions.kubelet"
}

func (p *planner) kubeadmStep(version Version) Step {
	k := &KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: version.String(), ControlPlane: p.want.controlPlaneChanges}
	irreversible := configForward
	if k.ControlPlane {
		irreversible = etcdForward
		k.Role = p.kubeadmRole()
		p.addons(k)
	}
	if s := p.in.Spec.Kubeadm; s != nil {
		for _, id := range s.IgnorePreflightErrors {
			if !slices.Contains(ownPreflights, string(id)) {
				k.IgnorePreflightErrors = append(k.IgnorePreflightErrors, string(id))
			}
		}
	}
	return Step{Kind: StepKubeadmUpgrade, Kubeadm: k, Irreversible: irreversible}
}

// kubeadmDisruption: the packages of a control-plane minor may restart the kubelet, so pods leave first.
func (p *planner) kubeadmDisruption() v1alpha1.Disruption {
	if p.movesControlPlaneMinor() && !p.drainSkipped() {
		return v1alpha1.DisruptionDrain
	}
	return v1alpha1.DisruptionRestart
}

func (p *planner) drainSkipped() bool {
	d := p.in.Spec.Drain
	return d != nil && d.SkipForMinor
}

// runtime moves the container runtime. Its daemon and its shims change together:
// across a minor the old shims would be left with a daemon that does not speak to
// them, so every sandbox is stopped first, with the kubelet down so that none comes back.
func (p *planner) runtime() error {
	if !p.want.runtimeChanges {
		return nil
	}
	minor := !p.want.runtime.SameMinor(p.want.runtimeNow)
	if minor {
		p.disturb(v1alpha1.DisruptionDrain)
		p.add(Step{Kind: StepStopSandboxes, Unit: p.kubeletUnit()})
		p.kubeletStopped = true
	} else {
		p.disturb(v1alpha1.DisruptionRestart)
	}
	pkg, _ := p.runtimePackage()
	if !carries(pkg.Version, p.want.runtime.Upstream()) {
		if err := wantedBy("spec.versions.containerRuntime.version", p.installUpstream(p.want.runtime, pkg.Name)); err != nil {
			return err
		}
	}
	p.restart(p.runtimeUnit())
	return nil
}

// kubelet moves the kubelet last, when its API server and its runtime are ready for it.
func (p *planner) kubelet() error {
	if p.want.kubeletChanges {
		if err := p.kubeletPackages(); err != nil {
			return err
		}
		p.disturb(p.kubeletDisruption())
	}
	if p.want.configChanges {
		if err := p.configuration(); err != nil {
			return err
		}
	}
	switch {
	case p.want.kubeletChanges || p.want.configChanges:
		p.restart(p.kubeletUnit())
	case p.kubeletStopped:
		p.startAgain()
	}
	return nil
}

// startAgain starts the kubelet that was stopped with the sandboxes. One that did not run
// before is not what this plan is for: whether it comes up is not for the plan to fail on.
func (p *planner) startAgain() {
	p.restart(p.kubeletUnit())
	if k := p.in.Facts.Kubelet; k == nil || k.down() {
		p.steps[len(p.steps)-1].Down = true
		p.find(warning(FindingKubeletDown, "the kubelet of this host does not run, and this plan brings no other: it is started again after the runtime, and the plan goes on whether it comes up or not; see why it does not run (journalctl -u kubelet)"))
	}
}

func (p *planner) kubeletPackages() error {
	var names []string
	if !carries(p.installed[packageKubelet].Version, p.want.kubelet.Upstream()) {
		names = append(names, packageKubelet)
	}
	if pkg, ok := p.installed[packageKubectl]; ok && packageUpstream(pkg.Version).LessThan(p.want.kubelet) {
		if _, err := p.upstream(packageKubectl, p.want.kubelet.Upstream()); err == nil {
			names = append(names, packageKubectl)
		} else {
			p.find(warning(FindingKubectlLeft, "no repository offers kubectl %s, so it stays at %s", p.want.kubelet, pkg.Version))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return wantedBy(p.kubeletField(), p.installUpstream(p.want.kubelet, names...))
}

// kubeletDisruption: across a minor a restarted kubelet restarts every container, so pods leave first.
func (p *planner) kubeletDisruption() v1alpha1.Disruption {
	if p.want.kubelet.SameMinor(p.want.kubeletNow) || p.drainSkipped() {
		return v1alpha1.DisruptionRestart
	}
	return v1alpha1.DisruptionDrain
}

// restart restarts a unit after making systemd read its files again.
func (p *planner) restart(unit string) {
	p.restarted = true
	p.add(Step{Kind: StepReloadUnits}, Step{Kind: StepRestartUnit, Unit: unit})
}

func (p *planner) kubeletUnit() string {
	if k := p.in.Facts.Kubelet; k != nil && k.Unit != "" {
		return k.Unit
	}
	return unitKubelet
}

func (p *planner) runtimeUnit() string {
	r := p.in.Facts.Runtime
	switch {
	case r != nil && r.Unit != "":
		return r.Unit
	case r != nil && r.Name == string(v1alpha1.RuntimeCRIO):
		return unitCRIO
	}
	return unitContainerd
}

// installUpstream installs packages at one upstream version, with the helpers they need.
func (p *planner) installUpstream(version Version, names ...string) error {
	var changes []PackageChange
	for _, name := range names {
		change, err := p.upstream(name, version.Upstream())
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	changes, err := p.addHelpers(changes)
	if err != nil {
		return err
	}
	p.install(changes)
	return nil
}

// upstream is the move of a package to an upstream version; of one whose repository is
// not known, without the package version that carries it.
func (p *planner) upstream(name, version string) (PackageChange, error) {
	c, err := ResolvePackage(p.order, p.in.Candidates, name, version)
	if err != nil && p.in.Estimate {
		return p.estimated(name, version), nil
	}
	if err != nil {
		return PackageChange{}, err
	}
	return p.change(c), nil
}

func (p *planner) estimated(name, version string) PackageChange {
	return PackageChange{Name: name, From: p.installed[name].Version, To: version, Held: slices.Contains(p.in.Facts.Packages.Holds, name)}
}

// wantedBy adds to a version that was not found the field of the spec that led to it.
func wantedBy(field string, err error) error {
	var blocked *Blocked
	if errors.As(err, &blocked) && blocked.Reason == ReasonVersionNotFound {
		return refuse(blocked.Reason, "for %s: %s", field, blocked.Message)
	}
	return err
}

// install adds one transaction. Holds are lifted right before it and are back right
// after it, so that no other updater finds the packages free for longer than needed.
func (p *planner) install(changes []PackageChange) {
	var lift, hold []PackageChange
	for _, c := range changes {
		if c.Held {
			lift = append(lift, PackageChange{Name: c.Name, Held: true})
		}
		if c.To != "" && (c.Held || slices.Contains(kubernetesPackages, c.Name)) {
			hold = append(hold, PackageChange{Name: c.Name, Held: c.Held})
		}
	}
	if len(lift) > 0 {
		p.add(Step{Kind: StepUnholdPackages, Packages: lift})
	}
	p.add(Step{Kind: StepInstallPackages, Packages: changes})
	if len(hold) > 0 {
		p.add(Step{Kind: StepHoldPackages, Packages: hold})
	}
	for _, c := range changes {
		p.changes = append(p.changes, c)
		p.installed[c.Name] = InstalledPackage{Name: c.Name, Version: c.To}
	}
}

// change is the move of a package from what is installed to a candidate.
func (p *planner) change(c Candidate) PackageChange {
	return PackageChange{
		Name: c.Name, From: p.installed[c.Name].Version, To: c.Version,
		File: c.SHA256 + p.fileEnding(), SHA256: c.SHA256, Size: c.Size, URI: c.URI(),
		Held: slices.Contains(p.in.Facts.Packages.Holds, c.Name),
	}
}

func (p *planner) fileEnding() string {
	if p.in.Facts.Packages.Manager == "apt" {
		return ".deb"
	}
	return ".rpm"
}
