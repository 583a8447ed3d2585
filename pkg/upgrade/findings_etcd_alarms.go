package upgrade

import "strings"

// etcdAlarms refuses on any alarm: with NOSPACE nothing can be written, kubeadm's own work
// included, and with CORRUPT nobody knows which member is right.
func etcdAlarms(e EtcdFacts, _ func(string) bool) []Finding {
	words := e.alarms()
	if len(words) == 0 {
		return nil
	}
	return []Finding{failure(FindingEtcdAlarm, "etcd has raised alarms: %s; on NOSPACE compact and defragment it or raise its quota, on CORRUPT replace the member, then disarm the alarm (etcdctl alarm disarm); the host is looked at again by itself", strings.Join(words, ", "))}
}

// alarms in words: which, and on whom.
func (e EtcdFacts) alarms() []string {
	var words []string
	for _, alarm := range e.Alarms {
		label := alarm.Member
		if m := e.member(alarm.Member); m != nil {
			label = m.Label()
		}
		words = append(words, alarm.Alarm+" on "+label)
	}
	return words
}
