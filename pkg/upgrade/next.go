package upgrade

import (
	"fmt"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// NextTarget says what one machine is to become in its next hop, under which
// kubeadm role, and which API servers it will meet once its own control plane has
// moved. An empty Target without *Blocked says that nothing is pending.
//
// The control plane goes first, one minor at a time, every machine before the next
// minor. Kubelets go to their wish in as few drains as skew allows, and everything
// else that is pending rides on the last window of a machine.
func NextTarget(fleet Fleet, host HostState, wish v1alpha1.Versions) (v1alpha1.Target, v1alpha1.KubeadmRole, v1alpha1.Skew, *Blocked) {
	return NewView(fleet).NextTarget(host, wish)
}

// NextTarget is the function of that name, on a parsed fleet.
func (v *View) NextTarget(host HostState, wish v1alpha1.Versions) (v1alpha1.Target, v1alpha1.KubeadmRole, v1alpha1.Skew, *Blocked) {
	n := &next{view: v, host: host, wish: wish}
	if err := n.plan(); err != nil {
		return v1alpha1.Target{}, "", v1alpha1.Skew{}, causedBy(host.PackagesBroken, err)
	}
	return n.target, n.role, n.skew, nil
}

// next works out one hop of one machine.
type next struct {
	view *View
	host HostState
	wish v1alpha1.Versions

	target v1alpha1.Target
	role   v1alpha1.KubeadmRole
	skew   v1alpha1.Skew
	// last says that nothing is left for a later window.
	last bool
	// held says why the kubelet stays behind while the rest goes on.
	held *Blocked
}

func (n *next) plan() *Blocked {
	if err := n.host.RoleMismatch(); err != nil {
		return err
	}
	if first, err := n.repair(); first {
		return err
	}
	n.last = true
	var hop Version
	var err *Blocked
	if n.repairsFirst() {
		n.last = n.controlPlaneThere()
	} else {
		hop, err = n.controlPlane()
	}
	if err != nil && err.Reason != ReasonWaitingForKubelets {
		return err
	}
	stuck := err
	err = n.kubelet(hop)
	if stuck != nil && n.target.Kubelet == "" {
		return stuck
	}
	if err != nil {
		return err
	}
	if n.last && stuck == nil {
		if err := n.ride(); err != nil {
			return err
		}
	}
	if Arrived(n.target) {
		return n.held
	}
	return n.describe(hop)
}

// controlPlane adds the machine's next control-plane hop, and returns it.
func (n *next) controlPlane() (Version, *Blocked) {
	if n.wish.ControlPlane == "" || !n.host.IsControlPlane() {
		return Version{}, nil
	}
	wish, ok := ParseKubernetes(string(n.wish.ControlPlane))
	if !ok {
		return wish, refuse(ReasonVersionInvalid, "spec.versions.controlPlane of %s is %q, which is no Kubernetes version: write it like v1.37.2", n.host.Name, n.wish.ControlPlane)
	}
	hop, err := n.view.hopOf(n.host, wish)
	if err != nil || !hop.Known() {
		return Version{}, err
	}
	if err := n.view.kubeletHolds(n.host, n.wish); err != nil {
		return Version{}, err
	}
	return n.takeHop(hop, wish)
}

// takeHop judges a control-plane hop and takes it into the target.
func (n *next) takeHop(hop, wish Version) (Version, *Blocked) {
	if err := n.view.allowControlPlane(n.host, hop); err != nil {
		n.last = false
		return Version{}, err
	}
	role, err := n.view.kubeadmRole(n.host, hop, wish)
	if err != nil {
		return Version{}, err
	}
	n.role, n.target.ControlPlane = role, v1alpha1.KubernetesVersion(hop.String())
	n.last = hop.Equal(wish)
	if n.last {
		n.target.ControlPlane = n.wish.ControlPlane
	}
	return hop, nil
}

// hopOf is the version of a host's next control-plane hop, unknown where its wish is met. It
// asks nothing of the fleet but what is passed through: whether it may go there is judged apart.
func (v *View) hopOf(host HostState, wish Version) (Version, *Blocked) {
	now, err := host.apiServer()
	if err != nil {
		return Version{}, err
	}
	if controlPlaneAt(host.control(), wish) {
		return Version{}, nil
	}
	if wish.LessThan(now) {
		return Version{}, refuse(ReasonDowngradeRefused, "the API server of %s runs %s and spec wants %s: a control plane never goes back; set spec.versions.controlPlane to %s or newer", host.Name, now.Raw(), wish.Raw(), now)
	}
	if err := host.componentsUnknown(now); err != nil {
		return Version{}, err
	}
	return v.hopTo(host, now, wish)
}

// unfinished is the version at which the half-done upgrade of a host ends: its components are
// all brought to what its API server runs, before any of them goes to another minor. Unknown
// where nothing is half done, and where a peer runs the next minor already: nothing goes below that.
func (v *View) unfinished(host HostState) Version {
	now := v.api[host.Name]
	if !host.oldestComponent(now).LessThan(now) {
		return Version{}
	}
	finish := now
	for name, version := range v.api {
		switch {
		case name == host.Name:
		case version.MinorsAhead(now) > 0:
			return Version{}
		case version.SameMinor(now):
			finish = later(finish, version)
		}
	}
	return finish
}

// hopTo is the version of the next hop on the way to a wish: what is half done, else the wish
// itself when it is in reach, else what the peers already run of the minor in between, else
// the known release of it.
func (v *View) hopTo(host HostState, now, wish Version) (Version, *Blocked) {
	if finish := v.unfinished(host); finish.Known() && wish.MinorsAhead(now) > 0 {
		return finish, nil
	}
	if wish.MinorsAhead(now) <= 1 {
		return wish, nil
	}
	minor := now.nextMinor()
	var peer Version
	for name, version := range v.api {
		if name != host.Name && version.Minor() == minor {
			peer = later(peer, version)
		}
	}
	if peer.Known() {
		return peer, nil
	}
	if patch, ok := ParseKubernetes(v.fleet.HopPatch[minor]); ok && patch.Minor() == minor {
		return patch, nil
	}
	why := ""
	if text := v.fleet.HopUnknown[minor]; text != "" {
		why = " (" + text + ")"
	}
	return Version{}, wait(ReasonHopVersionUnknown, "%s goes from %s to %s through %s, and which release of %s to take is not known%s: mend that, or set spec.versions.controlPlane and spec.versions.kubelet of every control-plane Machine to one release of %s first (in the MachineDeployment's template, where they come from one), and on towards %s when all of them run it; leave the workers as they are until then", host.Name, now.Raw(), wish.Raw(), minor, minor, why, minor, wish.Raw())
}

// kubeadmRole is First for one machine of a hop until it is through, then Other for the rest.
func (v *View) kubeadmRole(host HostState, hop, wish Version) (v1alpha1.KubeadmRole, *Blocked) {
	for _, h := range v.control {
		if h.Name != host.Name && controlPlaneAt(h.control(), hop) {
			return v1alpha1.KubeadmOther, nil
		}
	}
	if first := v.first(hop); first != "" && first != host.Name {
		return "", wait(ReasonWaitingForFirst, "%s is the first control-plane machine to go to %s; %s follows when it is through", first, hop, host.Name)
	}
	if peer, next := v.overtakenBy(host, wish); peer != "" {
		return "", refuse(ReasonDowngradeRefused, "spec wants %s for %s, and %s goes to %s next: no control plane goes to a version below a peer's; set spec.versions.controlPlane of both to one version, %s or newer", wish.Raw(), host.Name, peer, next, next)
	}
	return v1alpha1.KubeadmFirst, nil
}

// first is the machine that begins a hop: the one that has begun, else the first by name
// that may move. Who goes elsewhere next, or nowhere, is not waited for.
func (v *View) first(hop Version) string {
	var begun, pending string
	for _, h := range v.control {
		next, err := v.wishedHop(h)
		if h.First && h.keepsFirst(hop, next, err) {
			return h.Name
		}
		if !next.Equal(hop) {
			continue
		}
		if begun == "" && v.api[h.Name].Equal(hop) {
			begun = h.Name
		}
		if pending == "" && !h.Sidelined && v.allowControlPlane(h, hop) == nil {
			pending = h.Name
		}
	}
	return firstOf(begun, pending)
}

// keepsFirst says that a machine which was granted a hop as its first still has it to do. In
// the middle of it, what its components run may not be known for a while.
func (h HostState) keepsFirst(hop, next Version, err *Blocked) bool {
	if err != nil {
		wish, _ := ParseKubernetes(string(h.Wish.ControlPlane))
		return !err.Terminal && !wish.LessThan(hop) && !controlPlaneAt(h.control(), hop)
	}
	return next.Equal(hop)
}

// wishedHop is the next control-plane hop of a machine by its own wish; unknown for none. It
// fails where the machine takes no hop because of what else is wished for.
func (v *View) wishedHop(h HostState) (Version, *Blocked) {
	wish, ok := ParseKubernetes(string(h.Wish.ControlPlane))
	if !ok || !h.Managed || !h.IsControlPlane() {
		return Version{}, nil
	}
	if err := v.kubeletHolds(h, h.Wish); err != nil {
		return Version{}, err
	}
	return v.hopOf(h, wish)
}

// kubeletHolds refuses a machine whose kubelet is wished to be what it may never be: its control plane stays as well.
func (v *View) kubeletHolds(h HostState, wish v1alpha1.Versions) *Blocked {
	if wish.Kubelet == "" || !h.hasKubelet() {
		return nil
	}
	want, ok := ParseKubernetes(string(wish.Kubelet))
	if !ok {
		return kubeletInvalid(h, wish)
	}
	if now, err := h.kubelet(); err == nil && h.kubeletRuns() && h.kubeletGoesBack(now, want, wish) {
		return v.kubeletRefused(h, now, want)
	}
	return nil
}

// overtakenBy names a peer whose next hop, which it may take now, is past all that a host wishes for.
func (v *View) overtakenBy(host HostState, wish Version) (peer string, next Version) {
	for _, h := range v.control {
		if h.Name == host.Name || h.Sidelined {
			continue
		}
		if next, err := v.wishedHop(h); err == nil && wish.LessThan(next) && v.allowControlPlane(h, next) == nil {
			return h.Name, next
		}
	}
	return "", Version{}
}

// kubelet adds the kubelet's move, next to a control-plane hop or without one.
func (n *next) kubelet(hop Version) *Blocked {
	if n.wish.Kubelet == "" || !n.host.hasKubelet() {
		return nil
	}
	wish, ok := ParseKubernetes(string(n.wish.Kubelet))
	if !ok {
		return kubeletInvalid(n.host, n.wish)
	}
	now, err := n.host.kubelet()
	if err != nil {
		return err
	}
	if !n.host.kubeletRuns() {
		if err := n.deadKubelet(now, wish, hop); err != nil {
			return n.mend(err, hop)
		}
	}
	if now.Equal(wish) {
		return nil
	}
	if n.host.kubeletGoesBack(now, wish, n.wish) {
		return n.view.kubeletRefused(n.host, now, wish)
	}
	api, err := n.view.apiServers(n.host.Name, hop)
	if err != nil {
		return err
	}
	return n.moveKubelet(now, wish, hop, api)
}

func kubeletInvalid(h HostState, wish v1alpha1.Versions) *Blocked {
	return refuse(ReasonVersionInvalid, "spec.versions.kubelet of %s is %q, which is no Kubernetes version: write it like v1.37.2", h.Name, wish.Kubelet)
}

// kubeletGoesBack says that a kubelet would go to a lower version that the host has not run before.
func (h HostState) kubeletGoesBack(now, want Version, wish v1alpha1.Versions) bool {
	return want.LessThan(now) && !recordedIn(h.Record, wish, &h.Versions)
}

func (v *View) kubeletRefused(h HostState, now, want Version) *Blocked {
	return refuse(ReasonDowngradeRefused, "the kubelet of %s runs %s and spec wants %s: a lower version is refused, unless this machine has run all of spec.versions under Refit before, next to what else it runs now; %s", h.Name, now.Raw(), want.Raw(), v.instead(h.Name, now))
}

// repairsFirst says that another kubelet may mend a broken host now: it is wished for,
// skew allows it as the API servers are, and it waits for no hop of a control plane,
// not even of its own, which only a kubelet that runs can take.
func (n *next) repairsFirst() bool {
	wish, ok := ParseKubernetes(string(n.wish.Kubelet))
	if !ok || !n.host.hasKubelet() || !n.host.broken() {
		return false
	}
	now, err := n.host.kubelet()
	if err != nil || !now.LessThan(wish) {
		return false
	}
	return n.view.allowKubelet(n.host, wish, Version{}) == nil
}

// controlPlaneThere says that the host's own control plane has nothing left to do.
func (n *next) controlPlaneThere() bool {
	wish, ok := ParseKubernetes(string(n.wish.ControlPlane))
	return n.wish.ControlPlane == "" || !n.host.IsControlPlane() || ok && controlPlaneAt(n.host.control(), wish)
}

// deadKubelet says what another version cannot mend: a kubelet that has the wished one
// already, and a control plane, whose static pods only a running kubelet exchanges.
func (n *next) deadKubelet(now, wish, hop Version) *Blocked {
	switch {
	case now.Equal(wish):
		return wait(ReasonVersionUnknown, "the kubelet of %s does not run, and the one it has is %s already, as spec wants: see why it does not run (journalctl -u kubelet on the host), or set spec.versions.kubelet to another release", n.host.Name, now.Raw())
	case hop.Known():
		return wait(ReasonVersionUnknown, "the kubelet of %s does not run, and no control plane goes to %s without it: see why it does not run (journalctl -u kubelet on the host), or repair it first with a spec.versions.kubelet of the minor that the API servers run", n.host.Name, hop)
	}
	return nil
}

// moveKubelet takes the kubelet as far as it may go, or leaves it for a later window.
func (n *next) moveKubelet(now, wish, hop Version, api versionRange) *Blocked {
	behind := api.max.MinorsAhead(wish) > kubeletSkew(wish)
	switch {
	case hop.Known() && (!n.last || behind || !wish.SameMinor(hop) || n.awaited(wish, api.min)):
		n.last = false // the control plane goes alone, the kubelet has its own window
	case behind:
		return refuse(ReasonSkewViolated, "spec wants kubelet %s on %s, which is %d minors behind the newest API server %s: at most %d are allowed", wish.Raw(), n.host.Name, api.max.MinorsAhead(wish), api.max.Raw(), kubeletSkew(wish))
	case wish.MinorsAhead(api.min) <= 0 && (n.host.broken() || !n.awaited(wish, api.min) || n.mustCatchUp(now, api)):
		n.target.Kubelet = n.wish.Kubelet
	case n.mustCatchUp(now, api):
		n.target.Kubelet, n.last = v1alpha1.KubernetesVersion(api.min.String()), false
	default:
		return n.awaitControlPlane(wish, api.min)
	}
	return nil
}

// awaited says that the oldest API server is older than the kubelet's wish, and about to catch up.
func (n *next) awaited(wish, oldest Version) bool {
	return oldest.LessThan(wish) && n.coming(wish)
}

// mustCatchUp says that a control plane on its way cannot take its next minor while this kubelet is where it is.
func (n *next) mustCatchUp(now Version, api versionRange) bool {
	if api.min.MinorsAhead(now) <= 0 {
		return false
	}
	return slices.ContainsFunc(n.view.control, func(h HostState) bool {
		hop, err := n.view.wishedHop(h)
		return err == nil && !h.Sidelined && hop.MinorsAhead(n.view.api[h.Name]) > 0 && tooFarBehind(now, hop)
	})
}

// awaitControlPlane holds everything while the control plane is on its way, so that the
// machine is drained once; a control plane that will not move holds only the kubelet.
func (n *next) awaitControlPlane(wish, oldest Version) *Blocked {
	blocked := wait(ReasonWaitingForControlPlane, "kubelet %s on %s waits for the control plane, whose oldest API server runs %s: no kubelet may be newer", wish.Raw(), n.host.Name, oldest.Raw())
	if n.coming(wish) {
		return blocked
	}
	if stuck := n.sidelined(wish); stuck != "" {
		blocked.Message += fmt.Sprintf("; %s is to go there but is paused, failed or out of service: see why on that machine and mend it", stuck)
	} else if stuck := n.standing(wish); stuck != "" {
		blocked.Message += fmt.Sprintf("; %s is to go there and cannot: see why on that machine and mend it", stuck)
	} else if strange := n.roleless(wish); strange != "" {
		blocked.Message += fmt.Sprintf("; %s runs an API server, but its spec.roles has no ControlPlane: add it, and set its spec.versions.controlPlane", strange)
	} else {
		blocked.Message += "; no control-plane machine is on its way there, set spec.versions.controlPlane first"
	}
	n.held = blocked
	return nil
}

// coming says whether some other control-plane machine is on its way to a version, or past it.
func (n *next) coming(version Version) bool {
	return slices.ContainsFunc(n.view.control, func(h HostState) bool {
		return !h.Sidelined && n.goesTo(h, version) && !n.view.stands(h)
	})
}

// sidelined names the other control-plane machine that would be on its way to a version, were it not sidelined.
func (n *next) sidelined(version Version) string {
	for _, h := range n.view.control {
		if h.Sidelined && n.goesTo(h, version) {
			return h.Name
		}
	}
	return ""
}

// standing names the other control-plane machine that is to go to a version and cannot, until a person does something.
func (n *next) standing(version Version) string {
	for _, h := range n.view.control {
		if n.goesTo(h, version) {
			return h.Name
		}
	}
	return ""
}

// roleless names a machine whose API server is older than a version and is moved by nobody, for want of its role.
func (n *next) roleless(version Version) string {
	for _, h := range n.view.control {
		if h.Managed && !h.IsControlPlane() && n.view.api[h.Name].LessThan(version) {
			return h.Name
		}
	}
	return ""
}

// goesTo says that another control-plane machine is older than a version and wishes to be
// there, or past it. Where a minor lies between, any patch of the version's minor does:
// that is all that its kubelet waits for.
func (n *next) goesTo(h HostState, version Version) bool {
	wish, ok := ParseKubernetes(string(h.Wish.ControlPlane))
	now := n.view.api[h.Name]
	if !ok || h.Name == n.host.Name || !h.Managed || !now.LessThan(version) {
		return false
	}
	return !wish.LessThan(version) || version.MinorsAhead(now) > 0 && wish.MinorsAhead(version) >= 0
}

// stands says that a machine does not take its next hop of the control plane until a person does
// something: it is refused for good, or what it waits for is not on its way itself.
func (v *View) stands(h HostState) bool {
	if v.refused(h) {
		return true
	}
	hop, err := v.wishedHop(h)
	if err != nil {
		return false
	}
	for _, name := range v.peersBehind(h.Name, hop) {
		if i := slices.IndexFunc(v.control, func(p HostState) bool { return p.Name == name }); !v.moves(v.control[i]) {
			return true
		}
	}
	lagging := v.lagging(hop)
	return len(lagging) > 0 && hop.MinorsAhead(v.api[h.Name]) > 0 && slices.ContainsFunc(v.fleet.Hosts, func(k HostState) bool {
		return slices.Contains(lagging, k.Name) && v.staysBehind(k, hop)
	})
}

// refused says that a machine is refused for good, by what its control plane is to become.
func (v *View) refused(h HostState) bool {
	hop, err := v.wishedHop(h)
	if err != nil {
		return err.Terminal
	}
	return v.belowPeer(h, hop) != nil
}

// moves says that a machine has a hop of the control plane before it.
func (v *View) moves(h HostState) bool {
	hop, err := v.wishedHop(h)
	return err == nil && hop.Known() && !h.Sidelined
}

// staysBehind says that no window of a host brings its kubelet near enough for a hop.
func (v *View) staysBehind(h HostState, hop Version) bool {
	wish, ok := ParseKubernetes(string(h.Wish.Kubelet))
	return !h.Managed || h.Sidelined || !ok || tooFarBehind(wish, hop) || v.refused(h)
}

// ride adds what goes along with the last window of a machine. A runtime that does not
// say what it is holds the whole window: unknown is not older than anything.
func (n *next) ride() *Blocked {
	if r := n.wish.ContainerRuntime; r != nil && r.Version != "" && !runtimeAt(n.host.Versions.ContainerRuntime, r) {
		if err := n.host.runtimeMovable(r); err != nil {
			return err
		}
		n.target.ContainerRuntime = r.DeepCopy()
	}
	if e := n.wish.Etcd; e != "" && !SameRuntime(string(e), n.host.Versions.Etcd) {
		n.target.Etcd = e
	}
	n.target.OS = n.host.OSPending
	n.target.Certificates = n.host.RenewalDue && n.target.ControlPlane == "" // kubeadm upgrade renews them
	return nil
}

func runtimeAt(seen *v1alpha1.ObservedRuntime, want *v1alpha1.ContainerRuntime) bool {
	return seen != nil && seen.Name == string(want.Name) && SameRuntime(runtimeSeen(seen), string(want.Version))
}

func runtimeSeen(seen *v1alpha1.ObservedRuntime) string {
	if seen == nil {
		return ""
	}
	return firstOf(seen.Version, seen.Text)
}

func runtimeKnown(text string) bool {
	_, ok := ParseRuntime(text)
	return ok
}

// describe adds what the agent must know of the API servers and of kubeadm. A window in
// which neither kubelet nor control plane moves may restart a kubelet all the same: it is
// told of the API servers where they are known.
func (n *next) describe(hop Version) *Blocked {
	if n.target.Kubelet != "" && !n.host.IsControlPlane() {
		n.role = v1alpha1.KubeadmOther
	}
	api, err := n.view.apiServers(n.host.Name, hop)
	switch {
	case err == nil:
		n.skew = v1alpha1.Skew{MinAPIServer: api.min.String(), MaxAPIServer: api.max.String()}
	case n.target.Kubelet != "" || n.target.ControlPlane != "":
		return err
	}
	return nil
}
