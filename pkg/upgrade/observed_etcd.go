package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// Bounds of what a Machine reports of etcd, as its schema has them.
const (
	maxEtcdUnwell  = 9
	maxEtcdAlarms  = 4
	maxEtcdName    = 64
	maxEtcdProblem = 256
)

// ObservedEtcd is how the members of etcd are, as the Machine reports it; nil where the host has no etcd to ask.
func (f *Facts) ObservedEtcd() *v1alpha1.ObservedEtcd {
	if f.Etcd == nil {
		for _, p := range f.Problems {
			if p.Field == fieldEtcd {
				return &v1alpha1.ObservedEtcd{Problem: cut(p.Message, maxEtcdProblem)}
			}
		}
		return nil
	}
	return f.Etcd.observed()
}

func (e EtcdFacts) observed() *v1alpha1.ObservedEtcd {
	voters := e.voters()
	out := &v1alpha1.ObservedEtcd{
		Leader: e.Member != "" && e.Leader == e.Member, Quorum: e.Quorum,
		Members: int32(len(voters)), Learners: int32(len(e.Members) - len(voters)),
	}
	if own := e.Own(); own != nil {
		out.Member = own.Label()
	}
	for _, m := range voters {
		switch {
		case m.Healthy && m.Behind <= etcdLag:
			out.Healthy++
		case len(out.Unwell) < maxEtcdUnwell:
			out.Unwell = append(out.Unwell, cut(m.Label(), maxEtcdName))
		}
	}
	for _, words := range e.alarms() {
		if len(out.Alarms) < maxEtcdAlarms {
			out.Alarms = append(out.Alarms, cut(words, maxEtcdName))
		}
	}
	return out
}

// EtcdInDoubt says that etcd is not as it should be, or could not be asked: it may be well again soon.
func (f *Facts) EtcdInDoubt() bool {
	e := f.ObservedEtcd()
	return e != nil && (e.Problem != "" || e.Healthy < e.Members || e.Learners > 0 || len(e.Alarms) > 0 || !e.Quorum)
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
