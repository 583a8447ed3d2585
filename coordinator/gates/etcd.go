package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// No host with a control plane or a member of etcd is disturbed unless every such host says that
// all members are well. The coordinator asks no etcd itself: it has no key to one. Where the
// only member that is away is the one on the machine that would go, it may be mended, as
// long as the others are a quorum. The host looks once more under its grant.
func etcdWell(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	plan := fleet.FrozenPlan(m.Machine)
	if !isMember(m) || plan == nil || plan.Disruption == v1alpha1.DisruptionNone {
		return nil
	}
	for _, other := range f.Members() {
		if why := etcdAsSeenFrom(other, m); why != "" {
			return &Verdict{Reason: reasonOfEtcd(other), Message: fmt.Sprintf("etcd, as %s sees it: %s", other.Name, why)}
		}
	}
	return nil
}

func reasonOfEtcd(m *fleet.Machine) string {
	if e := m.Status.Etcd; e == nil || e.Problem != "" {
		return ReasonEtcdUnknown
	}
	return ReasonEtcdNotWell
}

// etcdAsSeenFrom is what speaks against disturbing a machine by the report of another, or its own; "" for nothing.
func etcdAsSeenFrom(other, m *fleet.Machine) string {
	e := other.Status.Etcd
	switch {
	case e == nil && runsEtcd(other):
		return "its agent says nothing of the members; it does so from this version on"
	case e == nil:
		return ""
	case e.Problem != "" && other == m: // its own member is away: the others say whether it may be mended
		return ""
	case e.Problem != "":
		return "nobody could be asked (" + e.Problem + "): see to it there"
	case !e.Quorum:
		return "it answers no read that takes a quorum: bring its members back"
	case len(e.Alarms) > 0:
		return "alarms are raised (" + strings.Join(e.Alarms, ", ") + "): see to them, then disarm them"
	case e.Member == "": // it runs elsewhere, and is not disturbed from here
		return ""
	case e.Learners > 0:
		return fmt.Sprintf("%d of its members have no vote yet: let the join end, or remove them", e.Learners)
	case e.Healthy < e.Members && !mends(e, m):
		return fmt.Sprintf("%d of %d members are well, not %s: bring them back first", e.Healthy, e.Members, strings.Join(e.Unwell, ", "))
	}
	return ""
}

// mends says that only the member on the machine is away, and that the others are a quorum without it.
func mends(e *v1alpha1.ObservedEtcd, m *fleet.Machine) bool {
	own := m.Name // as kubeadm names it
	if seen := m.Status.Etcd; seen != nil && seen.Member != "" {
		own = seen.Member
	}
	return slices.Equal(e.Unwell, []string{own}) && e.Healthy >= e.Members/2+1
}

func runsEtcd(m *fleet.Machine) bool {
	return m.Status.Versions != nil && m.Status.Versions.Etcd != ""
}
