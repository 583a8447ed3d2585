package upgrade

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// wellEtcd is a cluster of some members that are all well, asked from the first, which leads.
func wellEtcd(members int) EtcdFacts {
	e := EtcdFacts{Member: "a1", Leader: "a1", Quorum: true, ClusterVersion: "3.6.0"}
	for i := range members {
		digit := string(rune('1' + i))
		e.Members = append(e.Members, EtcdMemberFacts{ID: "a" + digit, Name: "cp" + digit, Started: true, Healthy: true, Version: "3.6.4", AppliedIndex: 1000, DBSize: 64 << 20})
	}
	return e
}

func sick(e *EtcdFacts, at ...int) {
	for _, i := range at {
		e.Members[i].Healthy, e.Members[i].Problem = false, "connection refused"
	}
}

func found(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Severity+" "+f.Reason)
	}
	return out
}

func TestNoMemberOfEtcdIsDisturbedUnlessAllAreWellAndAQuorumIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		members int
		change  func(e *EtcdFacts)
		accept  []string
		want    []string
		says    string
	}{
		"three that are well":                       {members: 3},
		"five that are well":                        {members: 5},
		"one is an outage":                          {members: 1, want: []string{"Info EtcdOutage"}, says: "the API server does not answer"},
		"two lose both":                             {members: 2, want: []string{"Error EtcdTwoMembers"}, says: "add a third control plane"},
		"two, and it is taken":                      {members: 2, accept: []string{FindingEtcdTwoMembers}, want: []string{"Warning EtcdTwoMembers"}},
		"one of three is down":                      {members: 3, change: func(e *EtcdFacts) { sick(e, 2) }, want: []string{"Error EtcdMemberUnhealthy", "Error EtcdQuorumAtRisk"}, says: "cp3 (connection refused)"},
		"one of five is down":                       {members: 5, change: func(e *EtcdFacts) { sick(e, 4) }, want: []string{"Error EtcdMemberUnhealthy"}, says: "cp5"},
		"two of five are down":                      {members: 5, change: func(e *EtcdFacts) { sick(e, 3, 4) }, want: []string{"Error EtcdMemberUnhealthy", "Error EtcdQuorumAtRisk"}, says: "2 healthy members with a vote of 5, and needs 3"},
		"the one on this host is down and mended":   {members: 3, change: func(e *EtcdFacts) { sick(e, 0) }, want: []string{"Warning EtcdMemberUnhealthy"}, says: "counted without it"},
		"the one on this host and another are down": {members: 3, change: func(e *EtcdFacts) { sick(e, 0, 1); e.Quorum = false }, want: []string{"Error EtcdNoQuorum", "Warning EtcdMemberUnhealthy", "Error EtcdMemberUnhealthy", "Error EtcdQuorumAtRisk"}, says: "1 of its 3"},
		"one was added and has never run": {members: 3, change: func(e *EtcdFacts) {
			e.Members = append(e.Members, EtcdMemberFacts{ID: "b1", Problem: "it was added, and has not run yet"})
		}, want: []string{"Error EtcdMemberUnhealthy", "Error EtcdQuorumAtRisk"}, says: "b1 (it was added"},
		"one is far behind":                   {members: 3, change: func(e *EtcdFacts) { e.Members[1].Behind = 5000 }, want: []string{"Error EtcdMemberBehind"}, says: "cp2 (5000 entries behind)"},
		"one is behind by what is on its way": {members: 3, change: func(e *EtcdFacts) { e.Members[1].Behind = etcdLag }},
		"the one on this host is behind":      {members: 3, change: func(e *EtcdFacts) { e.Members[0].Behind = 5000 }},
		"a learner counts for nothing": {members: 2, change: func(e *EtcdFacts) {
			e.Members = append(e.Members, EtcdMemberFacts{ID: "b1", Name: "cp3", Started: true, Healthy: true, Learner: true})
		}, want: []string{"Error EtcdLearner", "Error EtcdTwoMembers"}, says: "cp3 (learner b1)"},
		"there is no space":                          {members: 3, change: func(e *EtcdFacts) { e.Alarms = []EtcdAlarmFacts{{Member: "a2", Alarm: "NOSPACE"}} }, want: []string{"Error EtcdAlarm"}, says: "NOSPACE on cp2"},
		"a member is corrupt":                        {members: 3, change: func(e *EtcdFacts) { e.Alarms = []EtcdAlarmFacts{{Member: "zz", Alarm: "CORRUPT"}} }, want: []string{"Error EtcdAlarm"}, says: "CORRUPT on zz"},
		"nothing is read with a quorum":              {members: 3, change: func(e *EtcdFacts) { e.Quorum = false }, want: []string{"Error EtcdNoQuorum"}},
		"etcd is elsewhere, and a member is down":    {members: 3, change: func(e *EtcdFacts) { e.Member = ""; sick(e, 2) }, want: []string{"Warning EtcdMemberUnhealthy"}},
		"etcd is elsewhere, and it has two members":  {members: 2, change: func(e *EtcdFacts) { e.Member = "" }},
		"etcd is elsewhere, and serves nothing":      {members: 3, change: func(e *EtcdFacts) { e.Member = ""; e.Quorum = false }, want: []string{"Error EtcdNoQuorum"}},
		"etcd is elsewhere, and has no space":        {members: 3, change: func(e *EtcdFacts) { e.Member = ""; e.Alarms = []EtcdAlarmFacts{{Member: "a2", Alarm: "NOSPACE"}} }, want: []string{"Error EtcdAlarm"}},
		"what is accepted is not more than that one": {members: 3, change: func(e *EtcdFacts) { sick(e, 2) }, accept: []string{FindingEtcdTwoMembers}, want: []string{"Error EtcdMemberUnhealthy", "Error EtcdQuorumAtRisk"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := wellEtcd(tc.members)
			if tc.change != nil {
				tc.change(&e)
			}
			findings := e.Judge(tc.accept)
			assert.Equal(t, tc.want, found(findings))
			text := ""
			for _, f := range findings {
				text += f.Message + "\n"
			}
			assert.Contains(t, text, tc.says)
			refused := slices.ContainsFunc(tc.want, func(w string) bool { return strings.HasPrefix(w, SeverityError) })
			err := e.Safe(tc.accept)
			require.Equal(t, refused, err != nil)
			if refused {
				assert.False(t, IsBlocked(err).Terminal, "the host is looked at again by itself")
			}
		})
	}
}

func TestTheLeadershipGoesToAHealthyVoterThatHasTheMost(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *EtcdFacts)
		want   string
	}{
		"the first of two that are equal":   {func(*EtcdFacts) {}, "a2"},
		"the one that has more of the log":  {func(e *EtcdFacts) { e.Members[1].Behind = 3 }, "a3"},
		"never to one that is not well":     {func(e *EtcdFacts) { sick(e, 1) }, "a3"},
		"never to one without a vote":       {func(e *EtcdFacts) { e.Members[1].Learner = true }, "a3"},
		"to nobody where nobody can":        {func(e *EtcdFacts) { sick(e, 1, 2) }, ""},
		"to nobody where another one leads": {func(e *EtcdFacts) { e.Leader = "a2" }, ""},
		"to nobody where none is known":     {func(e *EtcdFacts) { e.Leader = "" }, ""},
		"to nobody where etcd is elsewhere": {func(e *EtcdFacts) { e.Member = "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := wellEtcd(3)
			tc.change(&e)
			heir, ok := e.Heir()
			assert.Equal(t, tc.want != "", ok)
			assert.Equal(t, tc.want, heir.ID)
		})
	}
}

func TestAMemberIsBackOnceItIsWellWithAVoteAndCaughtUp(t *testing.T) {
	e := wellEtcd(3)
	sick(&e, 2)
	require.NoError(t, e.OwnCaughtUp(), "what the others are like is not for this host to say")
	for reason, change := range map[string]func(e *EtcdFacts){
		FindingEtcdUnhealthy: func(e *EtcdFacts) { sick(e, 0) },
		FindingEtcdBehind:    func(e *EtcdFacts) { e.Members[0].Behind = etcdLag + 1 },
		FindingEtcdLearner:   func(e *EtcdFacts) { e.Members[0].Learner = true },
	} {
		e := wellEtcd(3)
		change(&e)
		requireBlocked(t, e.OwnCaughtUp(), reason)
	}
	e.Member = "zz"
	requireBlocked(t, e.OwnCaughtUp(), FindingEtcdUnhealthy)
}

// withEtcd is a control plane with a member, on its way from one release to another.
func withEtcd(to string, change func(in *PlanInput, e *EtcdFacts)) PlanInput {
	e := wellEtcd(3)
	in := PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: controlPlaneTo(to), Facts: controlPlaneFacts("v1.36.3", "2.4.2"), Candidates: candidatesOf([]string{to}, []string{"2.4.2"})}
	in.Facts.Etcd = &e
	if change != nil {
		change(&in, &e)
	}
	return in
}

func TestEtcdIsGuardedBeforeTheFirstStepThatDisturbsItsMember(t *testing.T) {
	kinds := func(p Plan) (out []StepKind) {
		for _, s := range p.Steps {
			out = append(out, s.Kind)
		}
		return out
	}
	t.Run("the first of a hop takes a snapshot before", func(t *testing.T) {
		p := plan(t, withEtcd("v1.37.2", nil))
		assert.Equal(t, []StepKind{StepPreflight, StepSnapshotEtcd, StepGuardEtcd, StepMoveEtcdLeader}, kinds(p)[:4])
		assert.True(t, p.Steps[len(p.Steps)-1].Expect.EtcdMember, "and its member is back at the end")
	})
	t.Run("the others of the hop take none", func(t *testing.T) {
		p := plan(t, withEtcd("v1.37.2", func(in *PlanInput, _ *EtcdFacts) { in.Assignment.KubeadmRole = v1alpha1.KubeadmOther }))
		assert.Equal(t, []StepKind{StepPreflight, StepGuardEtcd, StepMoveEtcdLeader}, kinds(p)[:3])
	})
	t.Run("etcd elsewhere is asked, and its leadership left where it is", func(t *testing.T) {
		p := plan(t, withEtcd("v1.37.2", func(_ *PlanInput, e *EtcdFacts) { e.Member = "" }))
		assert.Equal(t, []StepKind{StepPreflight, StepSnapshotEtcd, StepGuardEtcd}, kinds(p)[:3])
		assert.NotContains(t, kinds(p), StepMoveEtcdLeader)
		assert.False(t, p.Steps[len(p.Steps)-1].Expect.EtcdMember)
	})
	t.Run("a reboot after other work is guarded again", func(t *testing.T) {
		p := plan(t, withEtcd("v1.37.2", func(in *PlanInput, _ *EtcdFacts) {
			in.Facts.Reboot.Required = true
			in.Spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
			in.Assignment.Target.OS = true
		}))
		at := slices.Index(kinds(p), StepReboot)
		require.Positive(t, at)
		assert.Equal(t, []StepKind{StepGuardEtcd, StepMoveEtcdLeader}, kinds(p)[at-2:at])
	})
	t.Run("a reboot alone is guarded once", func(t *testing.T) {
		p := plan(t, withEtcd("v1.37.2", func(in *PlanInput, _ *EtcdFacts) {
			in.Facts.Reboot.Required = true
			in.Spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
			in.Assignment = v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{OS: true}}
		}))
		assert.Equal(t, []StepKind{StepPreflight, StepGuardEtcd, StepMoveEtcdLeader, StepReboot, StepVerify}, kinds(p))
	})
	t.Run("what restarts no member is not held up by one", func(t *testing.T) {
		in := withEtcd("v1.36.4", func(in *PlanInput, e *EtcdFacts) { in.Assignment.Target.ControlPlane = ""; sick(e, 2) })
		assert.NotContains(t, kinds(plan(t, in)), StepGuardEtcd, "containers stay when a kubelet's patch restarts it")
	})
	t.Run("two members that are accepted are passed on to the guard, and not to kubeadm", func(t *testing.T) {
		p := plan(t, withEtcd("v1.37.2", func(in *PlanInput, e *EtcdFacts) {
			*e = wellEtcd(2)
			in.Spec.Kubeadm = &v1alpha1.KubeadmSpec{IgnorePreflightErrors: []v1alpha1.PreflightID{FindingEtcdTwoMembers}}
		}))
		for _, s := range p.Steps {
			if s.Kind == StepGuardEtcd {
				assert.Equal(t, []string{FindingEtcdTwoMembers}, s.Accept)
			}
			if s.Kubeadm != nil {
				assert.Empty(t, s.Kubeadm.IgnorePreflightErrors)
			}
		}
	})
}

func TestAPlanIsRefusedForWhatIsWrongWithEtcd(t *testing.T) {
	_, err := NewPlan(withEtcd("v1.37.2", func(_ *PlanInput, e *EtcdFacts) { sick(e, 2) }))
	requireBlocked(t, err, FindingEtcdUnhealthy)
	_, err = NewPlan(withEtcd("v1.37.2", func(in *PlanInput, _ *EtcdFacts) {
		in.Facts.Etcd, in.Facts.Problems = nil, []Problem{{Field: "etcd", Message: "connection refused"}}
	}))
	requireBlocked(t, err, FindingFactUnknown)
	_, err = NewPlan(withEtcd("v1.37.2", func(in *PlanInput, e *EtcdFacts) {
		e.Members[2].DBSize = 2 << 30
		in.Facts.Mounts = []MountFacts{{Path: "/", FreeBytes: 2 << 30}}
	}))
	assert.Contains(t, requireBlocked(t, err, FindingNoSpace).Message, "2304 MiB", "a snapshot needs room")
}

func TestAnEtcdThatIsAwayForWhatThePlanMendsKeepsBackNoRepair(t *testing.T) {
	in := renewalInput(managed(apiServerCert, -day))
	in.Facts.Problems = []Problem{{Field: "etcd", Message: "certificate has expired"}}
	for _, s := range plan(t, in).Steps {
		assert.NotContains(t, []StepKind{StepGuardEtcd, StepMoveEtcdLeader}, s.Kind)
	}
}

func TestEtcdGoesOneMinorAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		now, coming string
		refused     bool
	}{
		"a patch":                          {"3.6.4-0", "3.6.8-0", false},
		"the next minor":                   {"3.5.24-0", "3.6.4-0", false},
		"two minors":                       {"3.5.24-0", "3.7.0-0", true},
		"a major":                          {"3.7.0-0", "4.0.0-0", true},
		"back, which kubeadm leaves alone": {"3.6.8-0", "3.5.24-0", false},
		"what is no version":               {"latest", "3.7.0-0", false},
	} {
		t.Run(name, func(t *testing.T) {
			blocked := EtcdMinor(tc.now, tc.coming)
			require.Equal(t, tc.refused, blocked != nil)
			if tc.refused {
				assert.Equal(t, ReasonEtcdMinorSkipped, blocked.Reason)
			}
		})
	}
}
