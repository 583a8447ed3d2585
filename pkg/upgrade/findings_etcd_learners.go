package upgrade

// etcdLearners holds while the membership is about to change: a learner counts for no quorum,
// and one that is left over is a join that nobody has ended.
func etcdLearners(e EtcdFacts, _ func(string) bool) []Finding {
	var learners []EtcdMemberFacts
	for _, m := range e.Members {
		if m.Learner {
			learners = append(learners, m)
		}
	}
	if len(learners) == 0 {
		return nil
	}
	return []Finding{e.weighed(failure(FindingEtcdLearner, "etcd has members without a vote: %s; a join is under way, or was left: promote them (etcdctl member promote) or remove them; the host is looked at again by itself",
		list(learners, func(m EtcdMemberFacts) string { return "learner " + m.ID })))}
}
