package upgrade

// etcdQuorum counts what is left while the member of this host is away.
func etcdQuorum(e EtcdFacts, accepts func(string) bool) []Finding {
	if e.elsewhere() {
		return nil
	}
	voters, left := e.voters(), 0
	for _, m := range voters {
		if m.Healthy && m.ID != e.Member {
			left++
		}
	}
	need := len(voters)/2 + 1
	const two = "etcd has two members with a vote, and needs both: while the one on this host restarts, nothing of the cluster can be written or read"
	switch {
	case len(voters) == 1:
		return []Finding{info(FindingEtcdOutage, "etcd has one member, the one on this host: while it restarts, the API server does not answer")}
	case left >= need:
		return nil
	case len(voters) == 2 && left == 1 && accepts(FindingEtcdTwoMembers):
		return []Finding{warning(FindingEtcdTwoMembers, two)}
	case len(voters) == 2 && left == 1:
		return []Finding{failure(FindingEtcdTwoMembers, two+"; add a third control plane, or take one of the two out of etcd (etcdctl member remove); where that outage is accepted, name %s in spec.kubeadm.ignorePreflightErrors", FindingEtcdTwoMembers)}
	}
	return []Finding{failure(FindingEtcdQuorumAtRisk, "without the member on this host etcd would have %d healthy members with a vote of %d, and needs %d: bring the others back first; the host is looked at again by itself", left, len(voters), need)}
}
