package upgrade

import (
	"maps"
	"slices"
	"strings"
)

// View is a Fleet with its versions parsed once, to ask many hosts about.
type View struct {
	fleet Fleet
	// control are the hosts with an API server, by whatever sign, by name.
	control []HostState
	api     map[string]Version
	// etcd are the hosts with a member of etcd and without a control plane, by name.
	etcd []HostState
	// unread says why the API servers of the fleet are not known, when they are not.
	unread *Blocked
	// kubelets are the hosts of each kubelet minor, and deaf those whose kubelet is not understood.
	kubelets map[int]kubeletMinor
	deaf     map[string]bool
}

// kubeletMinor are the hosts whose kubelets are of one minor.
type kubeletMinor struct {
	version Version
	hosts   map[string]bool
}

// NewView parses a fleet.
func NewView(f Fleet) *View {
	v := &View{fleet: f, api: map[string]Version{}, kubelets: map[int]kubeletMinor{}, deaf: map[string]bool{}}
	for _, h := range f.Hosts {
		if h.APIServer != NoAPIServer {
			v.control = append(v.control, h)
		}
		if h.isEtcd() {
			v.etcd = append(v.etcd, h)
		}
		v.addKubelet(h)
	}
	slices.SortFunc(v.control, func(a, b HostState) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(v.etcd, func(a, b HostState) int { return strings.Compare(a.Name, b.Name) })
	v.readAPIServers()
	return v
}

func (v *View) readAPIServers() {
	v.unread = nil
	for _, h := range v.control {
		version, err := h.apiServer()
		if err != nil && v.unread == nil {
			v.unread = err
		}
		v.api[h.Name] = version
	}
}

// addKubelet counts a host's kubelet; hosts that are not managed and report none have none.
func (v *View) addKubelet(h HostState) {
	if !h.hasKubelet() || h.Versions.Kubelet == "" && h.LastKubelet == "" && !h.Managed {
		return
	}
	version, err := h.kubelet()
	if err != nil {
		v.deaf[h.Name] = true
		return
	}
	m, ok := v.kubelets[version.ordinal()]
	if !ok {
		m = kubeletMinor{version: version, hosts: map[string]bool{}}
		v.kubelets[version.ordinal()] = m
	}
	m.hosts[h.Name] = true
}

// replace puts a host's new state in the place of its old one.
func (v *View) replace(old, now HostState) {
	delete(v.deaf, old.Name)
	if version, err := old.kubelet(); err == nil {
		delete(v.kubelets[version.ordinal()].hosts, old.Name)
	}
	v.addKubelet(now)
	for i := range v.etcd {
		if v.etcd[i].Name == now.Name {
			v.etcd[i] = now
		}
	}
	if now.APIServer == NoAPIServer {
		return
	}
	for i := range v.control {
		if v.control[i].Name == now.Name {
			v.control[i] = now
		}
	}
	v.readAPIServers()
}

// apiServers is the range of live API servers once a host's hop is done; without a hop, as they are.
func (v *View) apiServers(host string, hop Version) (versionRange, *Blocked) {
	var all versionRange
	if len(v.control) == 0 {
		return all, wait(ReasonSkewUnknown, "no API server of this cluster is known, so no kubelet can be judged: adopt the control plane's Nodes (kubectl refit adopt --apply) and install the agent there; a plan from files takes their Machines with a status, or with their facts. Under a control plane that is hosted elsewhere kubelets are not moved yet: remove spec.versions.kubelet, and the rest goes on")
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
		if tooFarBehind(m.version, target) {
			names = slices.AppendSeq(names, maps.Keys(m.hosts))
		}
	}
	slices.Sort(names)
	return names
}

// tooFarBehind says that a control plane cannot go to a version while a kubelet is at another.
func tooFarBehind(kubelet, hop Version) bool {
	return hop.MinorsAhead(kubelet) > min(kubeletSkew(kubelet), kubeadmSkew(hop))
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
