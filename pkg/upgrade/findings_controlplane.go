package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// duplicateStaticPods finds two manifests for one pod, such as a copy that somebody left
// beside the original: kubeadm upgrades one of them, and the kubelet may run the other.
func duplicateStaticPods(p *planner) []Finding {
	if !p.restarts() {
		return nil
	}
	paths := map[string][]string{}
	for _, pod := range p.in.Facts.StaticPods {
		name := firstOf(pod.Namespace, "default") + "/" + pod.Name
		paths[name] = append(paths[name], pod.Path)
	}
	var out []Finding
	for _, name := range sortedNames(paths) {
		if files := paths[name]; len(files) > 1 {
			slices.Sort(files)
			out = append(out, failure(FindingDuplicateStaticPod, "the static pod %s is in more than one file (%s): the kubelet reads every file of the directory, whatever its name ends in, so it is not known which one runs after a restart; move all but one to another directory, then retry", name, strings.Join(files, ", ")))
		}
	}
	return out
}

func sortedNames(m map[string][]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// removedAPIs finds clients that the target would leave without their API. The API
// server counts since it was started: what has been mended since is let pass by name.
func removedAPIs(p *planner) []Finding {
	control := p.in.Facts.Control
	if control == nil || !p.movesControlPlaneMinor() {
		return nil
	}
	var gone []string
	for _, api := range control.DeprecatedAPIs {
		removed, ok := removedIn(api.RemovedRelease)
		if ok && p.want.controlPlane.MinorsAhead(removed) >= 0 {
			gone = append(gone, apiName(api)+" (gone from v"+strings.TrimPrefix(api.RemovedRelease, "v")+" on)")
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	const says = "since the API server of this host was started, APIs were asked for that %s does not have: %s; find who asks in its audit log and move them to the newer version"
	if p.ignores(FindingRemovedAPI) {
		return []Finding{warning(FindingRemovedAPI, says, p.want.controlPlane.Raw(), strings.Join(gone, ", "))}
	}
	return []Finding{failure(FindingRemovedAPI, says+"; when that is done, name %s in spec.kubeadm.ignorePreflightErrors", p.want.controlPlane.Raw(), strings.Join(gone, ", "), FindingRemovedAPI)}
}

func apiName(api DeprecatedAPIFacts) string {
	name := api.Resource
	if api.Subresource != "" {
		name += "/" + api.Subresource
	}
	if api.Group == "" {
		return name + "." + api.Version
	}
	return name + "." + api.Version + "." + api.Group
}

// ignores says that spec lets a finding pass by its name.
func (p *planner) ignores(reason string) bool { return ignores(p.in.Spec, reason) }

func ignores(spec v1alpha1.MachineSpec, reason string) bool {
	k := spec.Kubeadm
	return k != nil && slices.Contains(k.IgnorePreflightErrors, v1alpha1.PreflightID(reason))
}

// The releases of etcd 3.5 between which membership that was written wrongly before is
// set right, and the Kubernetes whose kubeadm brings etcd 3.6.
const (
	etcdNextMinor    = "3.6.0"
	etcdFloor36      = "3.5.24" // https://github.com/etcd-io/etcd/issues/20793
	etcdZombies      = "3.5.26" // https://etcd.io/blog/2025/zombie_members_upgrade/
	kubernetesEtcd36 = "v1.34.0"
)

// etcdRemoved warns of etcd 3.6 on a machine of its own whose etcd 3.5 has not set right what it
// keeps of members that were removed.
func etcdRemoved(p *planner) []Finding {
	next, _ := ParseRelease(etcdNextMinor)
	zombies, _ := ParseRelease(etcdZombies)
	now, want := p.want.etcdNow, p.want.etcd
	if !p.want.etcdChanges || want.LessThan(next) || !now.LessThan(next) || !now.LessThan(zombies) {
		return nil
	}
	return []Finding{warning(FindingEtcdMembership, "etcd of this host runs %s and goes to %s, in which members that were removed long ago may come back unless etcd %s has run before: go to the newest patch of v3.5 first, or compare the member list with the hosts before and after", now.Raw(), want.Raw(), etcdZombies)}
}

// etcdFloor refuses to bring etcd 3.6 to data whose membership etcd 3.5 may have left wrong: it would not start.
func etcdFloor(p *planner) []Finding {
	control := p.in.Facts.Control
	brings, _ := ParseKubernetes(kubernetesEtcd36)
	if control == nil || !p.want.controlPlaneChanges || p.want.controlPlane.MinorsAhead(brings) < 0 || control.Etcd == "" && control.Manifests["etcd"] == "" {
		return nil
	}
	have, ok := ParseRuntime(control.Etcd)
	if !ok {
		return []Finding{failure(FindingFactUnknown, "the version of etcd on this host is %q, which is no version, so it is not known whether it can go to 3.6: see that it runs; the host is looked at again by itself", control.Etcd)}
	}
	next, _ := ParseRelease(etcdNextMinor)
	zombies, _ := ParseRelease(etcdZombies)
	switch {
	case !have.Version.LessThan(next) || !have.Version.LessThan(zombies):
		return nil
	case p.in.EtcdMoved:
		return []Finding{warning(FindingEtcdTooOld, "etcd of this host runs %s now, and %s brings etcd 3.6, which needs etcd %s to have run before: the hop before this one brings another etcd, which one is looked at again when it is there, and one that is too old is refused then", control.Etcd, p.want.controlPlane.Raw(), etcdFloor36)}
	case etcdTooOld(have.Version):
		return []Finding{failure(FindingEtcdTooOld, "etcd of this host runs %s, and %s brings etcd 3.6, which may not start on what etcd before %s has written of its members: go to the newest patch of v1.33 first, whose etcd sets that right, then retry", control.Etcd, p.want.controlPlane.Raw(), etcdFloor36)}
	}
	return []Finding{warning(FindingEtcdMembership, "etcd of this host runs %s, and %s brings etcd 3.6, in which members that were removed long ago may come back unless etcd %s has run before: compare the member list with the hosts before and after", control.Etcd, p.want.controlPlane.Raw(), etcdZombies)}
}
