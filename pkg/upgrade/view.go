package upgrade

import (
	"maps"
	"slices"
	"strings"
)

// View is a Fleet with its versions parsed once, to ask many hosts about.
type View struct {
	fleet Fleet
	// control are the hosts with an API server, by name.
	control []HostState
	api     map[string]Version
	// unread says why the API servers of the fleet are not known, when they are not.
	unread *Blocked
	// kubelets are the hosts of each kubelet minor, and deaf those whose kubelet is not understood.
	kubelets map[int]kubeletMinor
	deaf     []string
}

// kubeletMinor are the hosts whose kubelets are of one minor.
type kubeletMinor struct {
	version Version
	hosts   []string
}

// NewView parses a fleet.
func NewView(f Fleet) *View {
	v := &View{fleet: f, api: map[string]Version{}, kubelets: map[int]kubeletMinor{}}
	for _, h := range f.Hosts {
		if h.IsControlPlane() {
			v.addControlPlane(h)
		}
		if h.hasKubelet() && (h.Versions.Kubelet != "" || h.Managed) {
			v.addKubelet(h)
		}
	}
	slices.SortFunc(v.control, func(a, b HostState) int { return strings.Compare(a.Name, b.Name) })
	return v
}

func (v *View) addControlPlane(h HostState) {
	v.control = append(v.control, h)
	version, err := h.apiServer()
	if err != nil && v.unread == nil {
		v.unread = err
	}
	v.api[h.Name] = version
}

func (v *View) addKubelet(h HostState) {
	version, err := h.kubelet()
	if err != nil {
		v.deaf = append(v.deaf, h.Name)
		return
	}
	m := v.kubelets[version.ordinal()]
	if !m.version.Known() {
		m.version = version
	}
	m.hosts = append(m.hosts, h.Name)
	v.kubelets[version.ordinal()] = m
}

// apiServers is the range of live API servers once a host's hop is done; without a hop, as they are.
func (v *View) apiServers(host string, hop Version) (versionRange, *Blocked) {
	var all versionRange
	if len(v.control) == 0 {
		return all, wait(ReasonSkewUnknown, "no API server of this cluster is known, so no kubelet can be judged: add the control plane's Machines, or let the coordinator see its Nodes")
	}
	if v.unread != nil {
		return all, v.unread
	}
	for name, version := range v.api {
		if name == host && hop.Known() {
			version = hop
		}
		all.add(version)
	}
	return all, nil
}

// lagging names the hosts whose kubelets a control plane of some version would leave too far behind.
func (v *View) lagging(target Version) []string {
	var names []string
	for _, minor := range slices.Sorted(maps.Keys(v.kubelets)) {
		m := v.kubelets[minor]
		if target.MinorsAhead(m.version) > min(kubeletSkew(m.version), kubeadmSkew(target)) {
			names = append(names, m.hosts...)
		}
	}
	slices.Sort(names)
	return names
}

// kubeadmSkew is how many minors behind its target kubeadm lets kubelets be: one up to v1.28, three since.
func kubeadmSkew(target Version) int {
	if v129, _ := ParseKubernetes("v1.29.0"); target.MinorsAhead(v129) < 0 {
		return 1
	}
	return maxKubeletSkew
}

// shownHosts bounds how many hosts a message names.
const shownHosts = 5

// nameHosts lists hosts for a message.
func nameHosts(names []string) string {
	if len(names) <= shownHosts {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shownHosts], ", ") + ", …"
}
