package upgrade

// etcdAnswers refuses everything while etcd serves nothing: whoever restarts a member now restarts it into the same.
func etcdAnswers(e EtcdFacts, _ func(string) bool) []Finding {
	if e.Quorum {
		return nil
	}
	healthy := 0
	for _, m := range e.voters() {
		if m.Healthy {
			healthy++
		}
	}
	return []Finding{failure(FindingEtcdNoQuorum, "etcd answers no read that takes a quorum: %d of its %d voting members are healthy; bring its members back (etcdctl endpoint status --cluster); the host is looked at again by itself", healthy, len(e.voters()))}
}
