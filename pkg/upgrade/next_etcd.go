package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// etcd adds the next hop of the machine's member of etcd: by one minor, and not before the
// members of all other machines are near enough.
func (n *next) etcd() *Blocked {
	if n.wish.Etcd == "" {
		return nil
	}
	hop, wish, err := n.view.etcdHop(n.host, n.wish.Etcd)
	if err != nil || !hop.Known() {
		return err
	}
	if err := n.view.allowEtcd(n.host, hop); err != nil {
		return err
	}
	n.target.Etcd = v1alpha1.ReleaseVersion(hop.String())
	if hop.Equal(wish) {
		n.target.Etcd = n.wish.Etcd
		return nil
	}
	n.last = false
	return nil
}

// etcdHop is the version of a host's next hop, unknown where its wish is met.
func (v *View) etcdHop(host HostState, text v1alpha1.ReleaseVersion) (hop, wish Version, blocked *Blocked) {
	wish, ok := ParseRelease(string(text))
	if !ok {
		return hop, wish, refuse(ReasonVersionInvalid, "spec.versions.etcd of %s is %q, which is no release version: write it like v3.6.8", host.Name, text)
	}
	now, ok := ParseRuntime(host.Versions.Etcd)
	switch {
	case !ok:
		return hop, wish, wait(ReasonVersionUnknown, "the member of etcd on %s %s: nothing is planned on a guess; see that its agent runs and its etcd answers", host.Name, noVersion(host.Versions.Etcd))
	case now.Version.Equal(wish):
		return hop, wish, nil
	case wish.LessThan(now.Version):
		return hop, wish, refuse(ReasonDowngradeRefused, "etcd of %s runs %s and spec wants %s: etcd never goes back, since no older one reads its data; set spec.versions.etcd to %s or newer", host.Name, now.Version.Raw(), wish.Raw(), now.Version)
	case wish.MinorsAhead(now.Version) <= 1:
		return wish, wish, nil
	}
	hop, blocked = v.etcdBetween(host, now.Version, wish)
	return hop, wish, blocked
}

// etcdBetween is the release with which a member passes through the next minor: what others run
// of it already, else the known release of it.
func (v *View) etcdBetween(host HostState, now, wish Version) (Version, *Blocked) {
	minor := now.nextMinor()
	var peer Version
	for _, h := range v.etcd {
		if have, ok := ParseRuntime(h.Versions.Etcd); ok && h.Name != host.Name && have.Version.Minor() == minor {
			peer = later(peer, have.Version)
		}
	}
	if peer.Known() {
		release, _ := ParseRelease(peer.String())
		return release, nil
	}
	if release, ok := ParseRelease(v.fleet.HopPatch[minor]); ok && release.Minor() == minor {
		return release, nil
	}
	why := ""
	if text := v.fleet.HopUnknown[minor]; text != "" {
		why = " (" + text + ")"
	}
	return Version{}, wait(ReasonHopVersionUnknown, "etcd of %s goes from %s to %s through %s, and which release of %s to take is not known%s: mend that, or set spec.versions.etcd of every Etcd machine to one release of %s first, and on towards %s when all of them run it", host.Name, now.Raw(), wish.Raw(), minor, minor, why, minor, wish.Raw())
}

// allowEtcd says whether a member may take a hop while the others are as they are.
func (v *View) allowEtcd(host HostState, hop Version) *Blocked {
	next, _ := ParseRelease(etcdNextMinor)
	var behind, old, unknown []string
	own := false
	for _, h := range v.etcd {
		have, ok := ParseRuntime(h.Versions.Etcd)
		switch {
		case !ok:
			unknown = append(unknown, fmt.Sprintf("%s (%q)", h.Name, h.Versions.Etcd))
		case hop.MinorsAhead(have.Version) > 1:
			behind = append(behind, fmt.Sprintf("%s (%s)", h.Name, h.Versions.Etcd))
		case !hop.LessThan(next) && etcdTooOld(have.Version):
			old, own = append(old, fmt.Sprintf("%s (%s)", h.Name, h.Versions.Etcd)), own || h.Name == host.Name
		}
	}
	switch {
	case len(behind) > 0:
		return wait(ReasonWaitingForEtcd, "etcd of %s waits before it goes to %s: the members on %s are more than one minor older, and all must be within one minor of each other", host.Name, hop, strings.Join(behind, ", "))
	case len(old) > 0:
		blocked := wait(FindingEtcdTooOld, "etcd %s may not start on what etcd before %s has written of its members, and older ones run on %s: set spec.versions.etcd of these Machines to the newest patch of v3.5 first; no member goes on before", hop, etcdFloor36, strings.Join(old, ", "))
		blocked.Terminal = own
		return blocked
	case len(unknown) > 0:
		return wait(ReasonVersionUnknown, "the members of etcd on %s do not say their version, so it is not known whether %s may go to %s: see that etcd runs on these hosts and that their agents report it", strings.Join(unknown, ", "), host.Name, hop)
	}
	return nil
}

// etcdFirst holds a minor of the control plane while members of etcd on machines of their own are
// on their way: what stores goes before what is stored by it. Those that do not go anywhere by
// themselves hold nothing.
func (v *View) etcdFirst(host HostState, hop Version) *Blocked {
	var coming []string
	for _, h := range v.etcd {
		if next, _, err := v.etcdHop(h, h.Wish.Etcd); h.Managed && h.Wish.Etcd != "" && !h.Sidelined && err == nil && next.Known() {
			coming = append(coming, h.Name)
		}
	}
	if len(coming) == 0 || hop.MinorsAhead(v.api[host.Name]) <= 0 {
		return nil
	}
	slices.Sort(coming)
	return wait(ReasonWaitingForEtcd, "%s waits before it goes to %s: etcd of %s is on its way to another version, and what stores goes first", host.Name, hop, nameHosts(coming))
}
