package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// B62: three machines that are all of it, and bounds of a person's that would let two go.
func TestMembersThatAreWorkersTooGoOneAtATimeAndOnlyWhenAllAreWell(t *testing.T) {
	for name, tc := range map[string]struct {
		sees    func(member string) Edit
		granted []string
	}{
		"all are well":        {func(member string) Edit { return seesEtcd(member) }, []string{"cp1"}},
		"one is not":          {func(member string) Edit { return seesEtcd(member, without("cp3")) }, []string{"cp3"}}, // it may be mended
		"two are not":         {func(member string) Edit { return seesEtcd(member, without("cp2", "cp3")) }, nil},
		"one has no vote yet": {func(member string) Edit { return seesEtcd(member, func(e *v1alpha1.ObservedEtcd) { e.Learners = 1 }) }, nil},
		"one has raised alarm": {func(member string) Edit {
			return seesEtcd(member, func(e *v1alpha1.ObservedEtcd) { e.Alarms = []string{"CORRUPT on cp2"} })
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			every := Of(func(m *v1alpha1.Machine) {
				m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleControlPlane, v1alpha1.RoleEtcd, v1alpha1.RoleWorker}
			})
			b := New().Deployment("all", maxUnavailable(intstr.FromInt32(2)))
			for _, name := range []string{"cp1", "cp2", "cp3"} {
				b.Machine(name, "all", plane, every, tc.sees(name), Plans(v1alpha1.DisruptionDrain))
			}
			f := b.Build()
			var granted []string
			for _, m := range f.Machines {
				if gates.Check(f, m) == nil {
					m.Hold(&v1alpha1.Slot{Machine: m.Name, Disruption: v1alpha1.DisruptionDrain})
					granted = append(granted, m.Name)
				}
			}
			assert.Equal(t, tc.granted, granted)
		})
	}
}

// B66: a hop takes labels off the Nodes of control planes.
func TestAMemberIsOneWhateverItsNodeIsLabelled(t *testing.T) {
	const old, now = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
	for name, labels := range map[string]map[string]string{
		"as before the hop": {old: "", now: ""}, "as after it": {now: ""}, "with a value": {now: "true"}, "not at all": nil, "as another": {"node-role.kubernetes.io/worker": ""},
	} {
		t.Run(name, func(t *testing.T) {
			labelled := func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) { n.Labels = labels }
			f := New().Machine("cp1", "", plane, labelled, seesEtcd("cp1"), InSlot(v1alpha1.DisruptionRestart)).Machine("cp2", "", plane, labelled, seesEtcd("cp2")).Build()
			v := gates.Check(f, f.Find("cp2"))
			require.NotNil(t, v)
			assert.Equal(t, gates.ReasonControlPlaneBusy, v.Reason)
		})
	}
}
