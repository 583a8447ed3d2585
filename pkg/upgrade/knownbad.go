package upgrade

// badRelease is a range of kubeadm releases that break the upgrade they are to do.
type badRelease struct {
	from, to string // both included
	fault    string
	instead  string
}

// badReleases are known faults of kubeadm that no retry gets past, with the source of each.
var badReleases = []badRelease{
	// https://github.com/kubernetes/kubeadm/issues/2927: manifests that differ in defaulted fields only make kubeadm wait
	// for a change of etcd's static pod that never comes, and roll back.
	{from: "v1.28.0", to: "v1.28.2", fault: "waits for a change of etcd's static pod that does not come, and then rolls back", instead: "v1.28.3"},
}

// knownBad is the entry for a release of kubeadm, nil for none.
func knownBad(v Version) *badRelease {
	for i := range badReleases {
		b := &badReleases[i]
		from, _ := ParseKubernetes(b.from)
		to, _ := ParseKubernetes(b.to)
		if v.Known() && !v.LessThan(from) && !to.LessThan(v) {
			return b
		}
	}
	return nil
}

// knownBadRelease refuses to run a kubeadm that is known to break a control plane's upgrade.
func knownBadRelease(p *planner) []Finding {
	run := p.kubeadmRun()
	if run == nil {
		return nil
	}
	version, _ := ParseKubernetes(run.Version)
	bad := knownBad(version)
	if bad == nil {
		return nil
	}
	return []Finding{failure(FindingKnownBadRelease, "kubeadm %s %s: set spec.versions.controlPlane to %s or newer", run.Version, bad.fault, bad.instead)}
}
