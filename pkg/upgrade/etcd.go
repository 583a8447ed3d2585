package upgrade

import (
	"fmt"
	"slices"
	"strings"
)

// fieldEtcd is the field of a Problem that leaves open how the members of etcd are.
const fieldEtcd = "etcd"

// fieldEtcdUnit is the field of a Problem that leaves open whether etcd runs as a unit.
const fieldEtcdUnit = "etcdUnit"

// etcdLag is how many entries of etcd's log a member may be behind what the leader had when it was
// asked before, and still count as caught up: what is on its way at any moment.
const etcdLag = 100

// etcdCheck judges one thing about etcd before a host is disturbed on which it depends.
type etcdCheck func(e EtcdFacts, accepts func(reason string) bool) []Finding

// etcdChecks are made when a plan is made, and again right before its first disruptive step.
var etcdChecks = []etcdCheck{etcdAnswers, etcdUnhealthy, etcdBehind, etcdLearners, etcdQuorum, etcdAlarms}

// Judge says what speaks against disturbing this host now; a Warning or an Info does not.
func (e EtcdFacts) Judge(accepted []string) []Finding {
	var out []Finding
	for _, check := range etcdChecks {
		out = append(out, check(e, func(reason string) bool { return slices.Contains(accepted, reason) })...)
	}
	return out
}

// Safe refuses to disturb this host now; nil when nothing speaks against it. The refusal may pass.
func (e EtcdFacts) Safe(accepted []string) error { return Refusal(e.Judge(accepted)) }

// OwnCaughtUp says that the member of this host takes part again: it answers, has a vote and has
// applied what the leader had. What the other members are like is not for this host to say.
func (e EtcdFacts) OwnCaughtUp() error {
	own := e.Own()
	switch {
	case own == nil:
		return &Blocked{Reason: FindingEtcdUnhealthy, Message: "the member of etcd on this host is not in the list of members: it was removed, or it belongs to another cluster"}
	case !own.Healthy:
		return &Blocked{Reason: FindingEtcdUnhealthy, Message: fmt.Sprintf("the member of etcd on this host (%s) is not well: %s", own.Label(), own.Problem)}
	case own.Learner:
		return &Blocked{Reason: FindingEtcdLearner, Message: fmt.Sprintf("the member of etcd on this host (%s) has no vote any more: it came up as a learner", own.Label())}
	case own.Behind > etcdLag:
		return &Blocked{Reason: FindingEtcdBehind, Message: fmt.Sprintf("the member of etcd on this host (%s) is %d entries behind its leader", own.Label(), own.Behind)}
	}
	return nil
}

// Heir is the member that the leadership goes to when this host is disturbed: healthy, with a
// vote and the most of the log, the first by name among equals. False where this host's member
// does not lead, or nobody can follow it.
func (e EtcdFacts) Heir() (EtcdMemberFacts, bool) {
	var best *EtcdMemberFacts
	if e.Member == "" || e.Leader != e.Member {
		return EtcdMemberFacts{}, false
	}
	for i := range e.Members {
		m := &e.Members[i]
		if m.ID != e.Member && m.Healthy && !m.Learner && (best == nil || m.Behind < best.Behind) {
			best = m
		}
	}
	if best == nil {
		return EtcdMemberFacts{}, false
	}
	return *best, true
}

// voters are those that a quorum is counted of, started or not.
func (e EtcdFacts) voters() []EtcdMemberFacts {
	return slices.DeleteFunc(slices.Clone(e.Members), func(m EtcdMemberFacts) bool { return m.Learner })
}

// elsewhere says that no member runs on this host.
func (e EtcdFacts) elsewhere() bool { return e.Member == "" }

// weighed is an Error about others' members where this host has one: disturbing it could take the
// quorum. An etcd elsewhere is disturbed by nothing here.
func (e EtcdFacts) weighed(f Finding) Finding {
	if e.elsewhere() {
		f.Severity = SeverityWarning
	}
	return f
}

// list names some members, each with what is said of it.
func list(members []EtcdMemberFacts, say func(EtcdMemberFacts) string) string {
	var words []string
	for _, m := range members {
		words = append(words, m.Label()+" ("+say(m)+")")
	}
	return strings.Join(words, ", ")
}
