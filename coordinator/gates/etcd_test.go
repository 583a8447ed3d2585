package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seesEtcd is a report of three members that are well, but for what changes it.
func seesEtcd(member string, changes ...func(e *v1alpha1.ObservedEtcd)) Edit {
	return Of(func(m *v1alpha1.Machine) {
		e := &v1alpha1.ObservedEtcd{Member: member, Members: 3, Healthy: 3, Quorum: true}
		for _, change := range changes {
			change(e)
		}
		m.Status.Etcd = e
	})
}

func without(names ...string) func(e *v1alpha1.ObservedEtcd) {
	return func(e *v1alpha1.ObservedEtcd) { e.Unwell, e.Healthy = names, e.Members-int32(len(names)) }
}

func unasked(e *v1alpha1.ObservedEtcd) {
	*e = v1alpha1.ObservedEtcd{Member: e.Member, Problem: "connection refused"}
}

func TestNoControlPlaneIsGrantedAnythingWhileAnyHostSeesAMemberOfEtcdUnwell(t *testing.T) {
	silent := Of(func(m *v1alpha1.Machine) { m.Status.Versions.Etcd = "3.6.4" })
	learner := func(e *v1alpha1.ObservedEtcd) { e.Learners = 1 }
	for name, tc := range map[string]struct {
		cp1, cp2, cp3 Edit
		reason        string
		says          string
	}{
		"all are well":                            {cp1: seesEtcd("cp1"), cp2: seesEtcd("cp2"), cp3: seesEtcd("cp3")},
		"another one is away by its own report":   {cp1: seesEtcd("cp1"), cp2: seesEtcd("cp2"), cp3: seesEtcd("cp3", unasked), reason: gates.ReasonEtcdUnknown, says: "as cp3 sees it: nobody could be asked (connection refused)"},
		"another one is away by anybody's report": {cp1: seesEtcd("cp1"), cp2: seesEtcd("cp2", without("cp3")), cp3: seesEtcd("cp3"), reason: gates.ReasonEtcdNotWell, says: "2 of 3 members are well, not cp3"},
		"the one that would go is what is mended": {cp1: seesEtcd("cp1", unasked), cp2: seesEtcd("cp2", without("cp1")), cp3: seesEtcd("cp3", without("cp1"))},
		"by the name that its member has":         {cp1: seesEtcd("etcd-a", without("etcd-a")), cp2: seesEtcd("cp2", without("etcd-a")), cp3: seesEtcd("cp3")},
		"it and another one":                      {cp1: seesEtcd("cp1", unasked), cp2: seesEtcd("cp2", without("cp1", "cp3")), cp3: seesEtcd("cp3"), reason: gates.ReasonEtcdNotWell, says: "not cp1, cp3"},
		"nothing takes a quorum":                  {cp1: seesEtcd("cp1", func(e *v1alpha1.ObservedEtcd) { e.Quorum = false }), cp2: seesEtcd("cp2"), cp3: seesEtcd("cp3"), reason: gates.ReasonEtcdNotWell, says: "quorum"},
		"there is a learner":                      {cp1: seesEtcd("cp1"), cp2: seesEtcd("cp2", learner), cp3: seesEtcd("cp3"), reason: gates.ReasonEtcdNotWell, says: "no vote yet"},
		"there is an alarm":                       {cp1: seesEtcd("cp1"), cp2: seesEtcd("cp2"), cp3: seesEtcd("cp3", func(e *v1alpha1.ObservedEtcd) { e.Alarms = []string{"NOSPACE on cp2"} }), reason: gates.ReasonEtcdNotWell, says: "NOSPACE on cp2"},
		"an agent of before says nothing of it":   {cp1: seesEtcd("cp1"), cp2: silent, cp3: seesEtcd("cp3"), reason: gates.ReasonEtcdUnknown, says: "cp2"},
		"etcd is elsewhere, where one is away":    {cp1: seesEtcd("", without("e3")), cp2: seesEtcd("", without("e3")), cp3: seesEtcd("")},
		"etcd is elsewhere, and serves nothing":   {cp1: seesEtcd(""), cp2: seesEtcd(""), cp3: seesEtcd("", func(e *v1alpha1.ObservedEtcd) { e.Quorum = false }), reason: gates.ReasonEtcdNotWell, says: "cp3"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New().Machine("cp1", "", plane, tc.cp1).Machine("cp2", "", plane, tc.cp2).Machine("cp3", "", plane, tc.cp3).Machine("w1", "", worker).Build()
			v := gates.Check(f, f.Find("cp1"))
			if tc.reason == "" {
				assert.Nil(t, v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason)
			assert.Contains(t, v.Message, tc.says)
			if w := gates.Check(f, f.Find("w1")); w != nil {
				assert.NotContains(t, w.Reason, "Etcd", "a worker is no member")
			}
		})
	}
}

func TestWhatDisturbsNothingIsNotHeldUpByEtcd(t *testing.T) {
	f := New().Machine("cp1", "", plane, seesEtcd("cp1", unasked), Plans(v1alpha1.DisruptionNone)).Machine("cp2", "", plane, seesEtcd("cp2", without("cp3"))).Build()
	assert.Nil(t, gates.Check(f, f.Find("cp1")))
}
