package upgrade

import "fmt"

// etcdBehind wants the others to have what the leader has: one that is still catching up is no
// full member of the quorum that has to do without this host.
func etcdBehind(e EtcdFacts, _ func(string) bool) []Finding {
	var late []EtcdMemberFacts
	for _, m := range e.voters() {
		if m.Healthy && m.Behind > etcdLag && m.ID != e.Member {
			late = append(late, m)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return []Finding{e.weighed(failure(FindingEtcdBehind, "members of etcd have yet to catch up: %s; see whether their disks and network keep up (etcdctl endpoint status --cluster); the host is looked at again by itself",
		list(late, func(m EtcdMemberFacts) string { return fmt.Sprintf("%d entries behind", m.Behind) })))}
}
