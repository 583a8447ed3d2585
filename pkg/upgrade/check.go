package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// maxKubeletSkew is how many minors a kubelet may be behind the newest API server.
const maxKubeletSkew = 3

// wanted is the assignment's target, parsed, with what is observed next to it.
type wanted struct {
	kubelet, kubeletNow           Version
	controlPlane, controlPlaneNow Version
	runtime, runtimeNow           Version
	// changes says which of them have something to do.
	kubeletChanges, controlPlaneChanges, runtimeChanges bool
	// config is what is to be effective of spec.kubelet.configuration, and configChanges that it is not.
	config        KubeletWish
	configChanges bool
	// renewal of certificates; nil: none is due.
	renewal *Renewal
	// finishes says that the control plane changes by no version: a run of kubeadm is brought to its end.
	finishes bool
}

// check refuses what no step could make right, before anything is planned.
func (p *planner) check() error {
	for _, one := range []func() error{p.checkIdentity, p.checkMissingRole, p.checkControlPlane, p.checkKubelet, p.checkRuntime, p.checkDown, p.checkPackages, p.checkEtcd, p.checkConfiguration, p.checkRenewal} {
		if err := one(); err != nil {
			return p.cause(err)
		}
	}
	if !p.work() {
		return nil
	}
	for _, one := range []func() error{p.checkOS, p.checkArchitecture, p.checkRoles, p.checkDatabase, p.checkSkew, p.checkPairing} {
		if err := one(); err != nil {
			return p.cause(err)
		}
	}
	p.findings = append(p.findings, Unhandled(p.in.Spec)...)
	p.noteSecurity()
	return nil
}

// work says whether anything is to be done at all.
func (p *planner) work() bool {
	return p.want.kubeletChanges || p.want.controlPlaneChanges || p.want.runtimeChanges || p.want.configChanges || p.osPending() || p.securityPending() || p.keptPending() || p.rebootPending() || p.renews()
}

func (p *planner) checkIdentity() error {
	node := p.in.Facts.Node
	if p.in.Machine != "" && node != nil && node.Name != "" && node.Name != p.in.Machine {
		return refuse(ReasonNodeIdentityMismatch, "this host's kubelet certificate is for node %q, but the Machine is %q: check /etc/refit/agent.yaml and the kubelet's certificate", node.Name, p.in.Machine)
	}
	return nil
}

func (p *planner) checkControlPlane() error {
	target := p.in.Assignment.Target.ControlPlane
	if target == "" {
		p.finishKubeadm()
		return nil
	}
	if !slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane) {
		return refuse(ReasonRoleMismatch, "the target has a control-plane version but spec.roles has no ControlPlane")
	}
	want, err := parseTarget("controlPlane", string(target))
	if err != nil {
		return err
	}
	control := p.in.Facts.Control
	if control == nil {
		return refuse(ReasonRoleMismatch, "this host runs no control plane (no static pod manifests were found), but spec.roles says ControlPlane: correct spec.roles, or set the host up with kubeadm first")
	}
	now, err := parseObserved("API server", control.APIServer)
	if err != nil {
		return err
	}
	p.want.controlPlane, p.want.controlPlaneNow = want, now
	p.want.controlPlaneChanges = !controlPlaneAt(*control, want)
	p.finishKubeadm()
	if err := p.checkComponents(*control); err != nil {
		return err
	}
	switch {
	case p.want.controlPlaneChanges && p.kubeadmRole() == "":
		return refuse(ReasonRoleMismatch, "the assignment moves the control plane but does not say whether this machine is the first of the hop (kubeadmRole First) or another (Other)")
	case want.LessThan(now):
		return refuse(ReasonDowngradeRefused, "the API server of this host runs %s and the target is %s: a control plane never goes back, since etcd and stored objects cannot follow; set spec.versions.controlPlane to %s or newer", now.Raw(), want.Raw(), now)
	case want.MinorsAhead(now) > 1:
		return refuse(ReasonSkewViolated, "the API server of this host runs %s and the target is %s: kubeadm moves a control plane by one minor at a time; the hop in between is missing from the assignment", now.Raw(), want.Raw())
	}
	return nil
}

// checkComponents refuses to call a control plane done whose components nobody has seen at its version.
func (p *planner) checkComponents(control ControlFacts) error {
	if p.want.controlPlaneChanges {
		return nil
	}
	if why := p.probeFailed("containers"); why != "" && (control.ControllerManager == "" || control.Scheduler == "") {
		return wait(ReasonVersionUnknown, "the containers of this host could not be listed (%s), so it is not known what its controller manager and scheduler run: see that the container runtime answers", why)
	}
	if down := control.downComponent(); down != "" {
		return wait(ReasonVersionUnknown, "the %s of this host has a manifest and does not run, so it is not known which version it is: see why it does not run (crictl ps -a)", down)
	}
	return nil
}

// finishKubeadm plans the rest of a run of kubeadm that moved the static pods and did
// not end well: the versions that run cannot tell it from one that did.
func (p *planner) finishKubeadm() {
	control := p.in.Facts.Control
	if control == nil || control.Unfinished == nil || !slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane) {
		return
	}
	version, ok := ParseKubernetes(control.Unfinished.Version)
	now, known := ParseKubernetes(control.APIServer)
	if ok && known && now.Equal(version) && (!p.want.controlPlane.Known() || p.want.controlPlane.Equal(version)) {
		p.want.finishes = !p.want.controlPlaneChanges
		p.want.controlPlane, p.want.controlPlaneNow, p.want.controlPlaneChanges = version, now, true
	}
}

// kubeadmRole is that of the assignment, or of the run that is to be finished.
func (p *planner) kubeadmRole() v1alpha1.KubeadmRole {
	if p.want.finishes {
		return p.in.Facts.Control.Unfinished.Role
	}
	return p.in.Assignment.KubeadmRole
}

// controlPlaneAt says whether all components of a control plane run a version. One
// that cannot be read counts as done only if the API server is: facts name it when it is there.
func controlPlaneAt(c ControlFacts, want Version) bool {
	for _, text := range []string{c.APIServer, c.ControllerManager, c.Scheduler} {
		if v, ok := ParseKubernetes(text); text != "" && (!ok || !v.Equal(want)) {
			return false
		}
	}
	return c.APIServer != ""
}

// downComponent names a component next to the API server that has a manifest and runs nothing; "" for none.
func (c *ControlFacts) downComponent() string {
	if _, ok := c.Manifests["kube-controller-manager"]; ok && c.ControllerManager == "" {
		return "kube-controller-manager"
	}
	if _, ok := c.Manifests["kube-scheduler"]; ok && c.Scheduler == "" {
		return "kube-scheduler"
	}
	return ""
}

func (p *planner) checkKubelet() error {
	target := p.in.Assignment.Target.Kubelet
	if target == "" {
		return nil
	}
	want, err := parseTarget("kubelet", string(target))
	if err != nil {
		return err
	}
	now, err := p.kubeletNow()
	if err != nil {
		return err
	}
	pkg, packaged := p.installed[packageKubelet]
	p.want.kubelet, p.want.kubeletNow = want, now
	running, _ := ParseKubernetes(p.in.Facts.Kubelet.Running)
	p.want.kubeletChanges = !running.Equal(want) || packaged && !carries(pkg.Version, want.Upstream())
	if p.want.kubeletChanges && !packaged {
		return p.notPackaged("the kubelet of this host runs %s but no package %s is installed: Refit moves packages, and leaves a kubelet that was installed otherwise alone", now.Raw(), packageKubelet)
	}
	if newest := later(now, packageUpstream(pkg.Version)); want.LessThan(newest) && !p.recorded() {
		return refuse(ReasonDowngradeRefused, "the kubelet of this host is at %s and the target is %s: a lower version is refused, unless this host has run the whole target under Refit before, next to what else it runs now; set spec.versions.kubelet to %s or newer", newest.Raw(), want.Raw(), newest)
	}
	return nil
}

// kubeletNow is what runs; when nothing runs, what is installed: a dead kubelet can be repaired.
func (p *planner) kubeletNow() (Version, error) {
	k := p.in.Facts.Kubelet
	if k == nil {
		return Version{}, wait(ReasonVersionUnknown, "no kubelet was found on this host%s: install it, or remove spec.versions.kubelet", p.problem("kubelet"))
	}
	if k.Active { // it runs: what is on disk says nothing about it
		return parseObserved("kubelet", k.Running)
	}
	return parseObserved("kubelet", firstOf(k.Running, k.Installed))
}

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

func (p *planner) checkEtcd() error {
	if p.in.Assignment.Target.Etcd == "" || SameRuntime(string(p.in.Assignment.Target.Etcd), etcdNow(p.in.Facts)) {
		return nil
	}
	return refuse(ReasonEtcdUnsupported, "the target moves a separate etcd member to %s: only a stacked etcd, which moves with versions.controlPlane, is supported; remove spec.versions.etcd", p.in.Assignment.Target.Etcd)
}

func etcdNow(f Facts) string {
	if f.Control == nil {
		return ""
	}
	return f.Control.Etcd
}

// notPackaged refuses to move what no package brought, unless packages could not be looked
// at in the first place, or are not wholly there for now.
func (p *planner) notPackaged(format string, args ...any) error {
	if err := p.checkOS(); err != nil {
		return err
	}
	if err := p.checkHalfInstalled(); err != nil {
		return err
	}
	return refuse(ReasonNotPackaged, format, args...)
}

func (p *planner) checkOS() error {
	facts := p.in.Facts
	if p.in.Estimate && facts.Packages.Manager == "" {
		return nil
	}
	why := p.problem("packages")
	if p.order != nil && (why == "" || len(facts.Packages.Installed) > 0) {
		return nil
	}
	return refuse(ReasonUnsupportedOS, "this host is %s, and its packages could not be read with package manager %q%s: nothing is planned on it; nothing was changed",
		firstOf(facts.OS.PrettyName, facts.OS.ID, "an unknown system"), facts.Packages.Manager, why)
}

// architectures are those that Kubernetes is released for on servers.
var architectures = []string{"amd64", "arm64", "ppc64le", "s390x"}

// checkArchitecture: packages of Kubernetes for anything else are somebody's own, and a
// same version says nothing about them.
func (p *planner) checkArchitecture() error {
	arch := p.in.Facts.OS.Architecture
	if arch == "" || slices.Contains(architectures, arch) || !p.want.kubeletChanges && !p.want.controlPlaneChanges {
		return nil
	}
	return refuse(ReasonUnsupportedArchitecture, "this host is %s, and Kubernetes is released for %s: upgrade it by hand, or remove spec.versions.kubelet and spec.versions.controlPlane", arch, strings.Join(architectures, ", "))
}

// checkMissingRole refuses a host whose control plane its roles do not name, also when
// nothing is to be done: no kubelet of the fleet is judged rightly until they do.
func (p *planner) checkMissingRole() error {
	if missesRole(p.in.Spec.Roles, p.in.Facts.APIServerSign()) {
		return refuse(ReasonRoleMismatch, "%s", roleMissing)
	}
	return nil
}

// checkRoles sees that the host has a control plane when its Machine says so.
func (p *planner) checkRoles() error {
	wants := slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane)
	switch sign := p.in.Facts.APIServerSign(); {
	case sign == APIServerOnHost || !wants:
		return nil
	case sign == APIServerPossible:
		return wait(ReasonVersionUnknown, "it could not be found out whether this host runs a control plane%s, and spec.roles says so: see that its manifests can be read", p.problem("controlPlane"))
	}
	return refuse(ReasonRoleMismatch, "this host runs no control plane (no static pod manifest of an API server was found), but spec.roles says ControlPlane: correct spec.roles, or set the host up with kubeadm first")
}

// problem is probeFailed in brackets, to stand behind what is not known.
func (p *planner) problem(field string) string {
	if why := p.probeFailed(field); why != "" {
		return " (" + why + ")"
	}
	return ""
}

func (p *planner) checkDatabase() error {
	if err := p.checkHalfInstalled(); err != nil {
		return err
	}
	if lock := p.in.Facts.Packages.Lock; lock != nil {
		p.find(info(FindingPackageLockHeld, "%s; the work waits for it", lock))
	}
	return nil
}

// checkHalfInstalled waits for what a broken transaction left behind.
func (p *planner) checkHalfInstalled() error {
	if message := HalfInstalledMessage(p.in.Facts.HalfInstalled()); message != "" {
		return wait(ReasonPackageDBBroken, "%s", message)
	}
	return nil
}

// cause is a refusal with what is behind it named first.
func (p *planner) cause(err error) error {
	if blocked := IsBlocked(err); blocked != nil {
		return causedBy(HalfInstalledMessage(p.in.Facts.HalfInstalled()), blocked)
	}
	return err
}

// checkSkew keeps the kubelet between the oldest API server and the skew behind the newest.
func (p *planner) checkSkew() error {
	if !p.want.kubeletChanges {
		return nil
	}
	want := p.want.kubelet
	oldest, newest, err := p.apiServers(want)
	if err != nil || !oldest.Known() {
		return err
	}
	if want.MinorsAhead(oldest) > 0 {
		return refuse(ReasonSkewViolated, "the target's kubelet %s is newer than the oldest API server %s: no kubelet may be; upgrade every control plane first", want.Raw(), oldest.Raw())
	}
	if behind := newest.MinorsAhead(want); behind > kubeletSkew(want) {
		return refuse(ReasonSkewViolated, "the target's kubelet %s is %d minors behind the newest API server %s: at most %d are allowed", want.Raw(), behind, newest.Raw(), kubeletSkew(want))
	}
	return nil
}

// apiServers are the oldest and the newest API server that a kubelet will meet.
func (p *planner) apiServers(kubelet Version) (oldest, newest Version, err error) {
	s := p.in.Assignment.Skew
	if s == nil || s.MinAPIServer == "" {
		if p.in.Standalone {
			p.find(warning(FindingSkewUnknown, "no API server of another host was asked whether it takes kubelet %s: see yourself that none is older, and state the oldest with --api-server-version", kubelet.Raw()))
			own, err := p.ownAPIServer()
			return own, own, err
		}
		return Version{}, Version{}, wait(ReasonSkewUnknown, "the assignment does not say which API servers are live, so kubelet %s could be newer than one of them", kubelet.Raw())
	}
	if oldest, err = parseObserved("oldest API server", s.MinAPIServer); err != nil {
		return Version{}, Version{}, err
	}
	newest, err = parseObserved("newest API server", firstOf(s.MaxAPIServer, s.MinAPIServer))
	if err == nil && p.in.Standalone { // a person has stated them, and need not have thought of this host's own
		return p.withOwnAPIServer(oldest, newest)
	}
	return oldest, newest, err
}

func (p *planner) withOwnAPIServer(oldest, newest Version) (Version, Version, error) {
	own, err := p.ownAPIServer()
	if err != nil || !own.Known() {
		return oldest, newest, err
	}
	if own.LessThan(oldest) {
		oldest = own
	}
	return oldest, later(newest, own), nil
}

// ownAPIServer is this host's API server once its own hop is done; unknown where it has none.
func (p *planner) ownAPIServer() (Version, error) {
	switch {
	case p.want.controlPlane.Known():
		return p.want.controlPlane, nil
	case p.in.Facts.APIServerSign() != APIServerOnHost:
		return Version{}, nil
	case p.in.Facts.Control == nil:
		return parseObserved("API server", "")
	}
	return parseObserved("API server", p.in.Facts.Control.APIServer)
}

// kubeletSkew is how far a kubelet may be behind: three minors, two before v1.25.
func kubeletSkew(kubelet Version) int {
	if v125, _ := ParseKubernetes("v1.25.0"); kubelet.MinorsAhead(v125) < 0 {
		return maxKubeletSkew - 1
	}
	return maxKubeletSkew
}

// recorded says that the host has run the target's set of versions before, next to what stays.
func (p *planner) recorded() bool {
	return recordedIn(p.in.Record, p.in.Assignment.Target.Versions, p.in.Facts.Versions())
}

func parseTarget(field, text string) (Version, error) {
	v, ok := ParseKubernetes(text)
	if !ok {
		return v, refuse(ReasonVersionInvalid, "the target's %s version %q is no Kubernetes version: write it like v1.37.2", field, text)
	}
	return v, nil
}

func parseObserved(what, text string) (Version, error) {
	v, ok := ParseKubernetes(text)
	if !ok {
		return v, wait(ReasonVersionUnknown, "the version of the %s is %q, which is no version: nothing is planned on a guess; see that it runs and answers", what, text)
	}
	return v, nil
}

func later(a, b Version) Version {
	if a.LessThan(b) || !a.Known() {
		return b
	}
	return a
}
