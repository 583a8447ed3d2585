package upgrade

import (
	"fmt"
	"strings"
)

// etcdMembers holds a hop that brings etcd 3.6 while any member of the cluster may have its
// membership wrong: the new member would sit beside those that cannot follow it. Only etcd
// of the control planes' own hosts counts, since no other is moved by kubeadm.
func (v *View) etcdMembers(host HostState, hop Version) *Blocked {
	brings, _ := ParseKubernetes(kubernetesEtcd36)
	if hop.MinorsAhead(brings) < 0 || !v.etcdStacked() {
		return nil
	}
	var old, unknown []string
	own := false
	for _, h := range v.control {
		have, ok := ParseRuntime(h.Versions.Etcd)
		switch {
		case h.EtcdMoved:
		case !ok && v.api[h.Name].MinorsAhead(brings) >= 0: // it has been there
		case !ok:
			unknown = append(unknown, fmt.Sprintf("%s (%q)", h.Name, h.Versions.Etcd))
		case etcdTooOld(have.Version):
			old, own = append(old, fmt.Sprintf("%s (%s)", h.Name, h.Versions.Etcd)), own || h.Name == host.Name
		}
	}
	switch {
	case len(old) > 0:
		blocked := wait(FindingEtcdTooOld, "%s brings etcd 3.6, which may not start on what etcd before %s has written of its members, and older ones run on %s: no control plane of the cluster goes there before all members are set right; set spec.versions.controlPlane of these Machines to the newest patch of v1.33 first, whose etcd sets that right", hop, etcdFloor36, strings.Join(old, ", "))
		blocked.Terminal = own
		return blocked
	case len(unknown) > 0:
		return wait(FindingFactUnknown, "%s brings etcd 3.6, and the version of etcd is not known on %s, so it is not known whether all members can go there: see that etcd runs on these hosts and that their agents report it; no control plane of the cluster goes there before", hop, strings.Join(unknown, ", "))
	}
	return nil
}

// etcdStacked says that some control plane has a member of etcd on its own host.
func (v *View) etcdStacked() bool {
	for _, h := range v.control {
		if h.Versions.Etcd != "" {
			return true
		}
	}
	return false
}

// etcdTooOld says that what etcd of a version has written of its members may keep etcd 3.6 from starting.
func etcdTooOld(have Version) bool {
	floor, _ := ParseRelease(etcdFloor36)
	return have.LessThan(floor)
}
