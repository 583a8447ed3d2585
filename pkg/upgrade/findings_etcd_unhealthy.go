package upgrade

// etcdUnhealthy wants every member with a vote to be well, not just a quorum of them: with one
// away, the next fault of another one is an outage. The member of this host is what is mended.
func etcdUnhealthy(e EtcdFacts, _ func(string) bool) []Finding {
	var bad []EtcdMemberFacts
	var out []Finding
	for _, m := range e.voters() {
		switch {
		case m.Healthy:
		case m.ID == e.Member:
			out = append(out, warning(FindingEtcdUnhealthy, "the member of etcd on this host, %s, is not well (%s): the quorum is counted without it", m.Label(), m.Problem))
		default:
			bad = append(bad, m)
		}
	}
	if len(bad) > 0 {
		out = append(out, e.weighed(failure(FindingEtcdUnhealthy, "not every member of etcd is well: %s; bring them back, or remove those that are gone for good (etcdctl member remove); the host is looked at again by itself",
			list(bad, func(m EtcdMemberFacts) string { return m.Problem }))))
	}
	return out
}
