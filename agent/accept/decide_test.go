package accept_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func situation() accept.Situation {
	return accept.Situation{
		Status: v1alpha1.MachineStatus{Grant: &v1alpha1.Grant{ID: "g1", AssignmentID: "1-a", PlanHash: "h", Epoch: 3}},
		Plan:   &upgrade.Plan{AssignmentID: "1-a", Hash: "h"},
		Epoch:  3, BootID: "boot-1",
		Known:  func(string) bool { return false },
		Intent: func(string) *store.Intent { return nil },
	}
}

func onRecord(ids ...string) func(string) bool {
	return func(id string) bool {
		for _, known := range ids {
			if known == id {
				return true
			}
		}
		return false
	}
}

func intentOf(boot string) func(string) *store.Intent {
	return func(id string) *store.Intent {
		return &store.Intent{BootID: boot, Operation: upgrade.Operation{ID: id}}
	}
}

func operation(id string, state v1alpha1.OperationState) *v1alpha1.Operation {
	return &v1alpha1.Operation{ID: id, State: state}
}

func TestDecide(t *testing.T) {
	type want struct {
		action     accept.Action
		id, reason string
	}
	for name, tc := range map[string]struct {
		change func(s *accept.Situation)
		want   want
	}{
		"a grant for the frozen plan is accepted": {nil, want{accept.Accept, "g1", ""}},
		"no grant":                            {func(s *accept.Situation) { s.Status.Grant = nil }, want{}},
		"a void grant permits nothing":        {func(s *accept.Situation) { s.Status.Grant.Void = true }, want{}},
		"a grant without a plan waits for it": {func(s *accept.Situation) { s.Plan = nil }, want{}},
		"a grant on record is followed":       {func(s *accept.Situation) { s.Known = onRecord("g1") }, want{accept.Follow, "g1", ""}},
		"a grant on record is followed though the plan is gone": {func(s *accept.Situation) {
			s.Known, s.Plan = onRecord("g1"), nil
		}, want{accept.Follow, "g1", ""}},
		"a grant that ended by the API's word does not run again": {func(s *accept.Situation) {
			s.Status.LastOperation = operation("g1", v1alpha1.OperationFailed)
		}, want{}},
		"a grant of an older epoch is refused": {func(s *accept.Situation) { s.Epoch = 4 }, want{accept.Refuse, "g1", accept.ReasonStaleEpoch}},
		"a grant for another hash is refused":  {func(s *accept.Situation) { s.Plan.Hash = "other" }, want{accept.Refuse, "g1", accept.ReasonGrantMismatch}},
		"a grant for another assignment is refused": {func(s *accept.Situation) {
			s.Plan.AssignmentID = "2-b"
		}, want{accept.Refuse, "g1", accept.ReasonGrantMismatch}},
		"a grant is refused while another operation runs": {func(s *accept.Situation) { s.Running = "g0" }, want{accept.Refuse, "g1", accept.ReasonOperationRunning}},
		"a held host refuses":                             {func(s *accept.Situation) { s.Hold = &upgrade.HoldFacts{} }, want{accept.Refuse, "g1", accept.ReasonHeld}},
		"a host whose packages are worked on refuses":     {func(s *accept.Situation) { s.Lock = &upgrade.LockFacts{PID: 7} }, want{accept.Refuse, "g1", accept.ReasonPackageLockHeld}},
		"the owner's word comes before a lock": {func(s *accept.Situation) {
			s.Hold, s.Lock = &upgrade.HoldFacts{}, &upgrade.LockFacts{PID: 7}
		}, want{accept.Refuse, "g1", accept.ReasonHeld}},
		"an operation on record is followed whatever the lock": {func(s *accept.Situation) {
			s.Known, s.Lock = onRecord("g1"), &upgrade.LockFacts{PID: 7}
		}, want{accept.Follow, "g1", ""}},
		"an id that is a path is refused":          {func(s *accept.Situation) { s.Status.Grant.ID = "../x" }, want{accept.Refuse, "../x", accept.ReasonInvalidGrant}},
		"an empty id is refused":                   {func(s *accept.Situation) { s.Status.Grant.ID = "" }, want{accept.Refuse, "", accept.ReasonInvalidGrant}},
		"accepted, intent of this boot: goes on":   {accepted("g1", intentOf("boot-1"), nil), want{accept.Resume, "g1", ""}},
		"accepted, intent of another boot: lost":   {accepted("g1", intentOf("boot-0"), nil), want{accept.Lost, "g1", ""}},
		"accepted, nothing on disk: lost":          {accepted("g1", nil, nil), want{accept.Lost, "g1", ""}},
		"accepted and begun elsewhere: lost":       {accepted("g1", intentOf("boot-1"), operation("g1", v1alpha1.OperationProcessing)), want{accept.Lost, "g1", ""}},
		"accepted and ended: nothing":              {accepted("g1", nil, operation("g1", v1alpha1.OperationSuccessful)), want{}},
		"lost before the next grant is looked at":  {accepted("g0", nil, nil), want{accept.Lost, "g0", ""}},
		"the next grant after one that has ended":  {accepted("g0", nil, operation("g0", v1alpha1.OperationSuccessful)), want{accept.Accept, "g1", ""}},
		"lost though the grant was taken away":     {func(s *accept.Situation) { accepted("g1", nil, nil)(s); s.Status.Grant = nil }, want{accept.Lost, "g1", ""}},
		"an unknown boot never goes on":            {func(s *accept.Situation) { accepted("g1", intentOf(""), nil)(s); s.BootID = "" }, want{accept.Lost, "g1", ""}},
		"accepted and on record: followed":         {func(s *accept.Situation) { accepted("g1", nil, nil)(s); s.Known = onRecord("g1") }, want{accept.Follow, "g1", ""}},
		"on record, but the API lost the accepted": {func(s *accept.Situation) { s.Known, s.Epoch = onRecord("g1"), 9 }, want{accept.Follow, "g1", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation()
			if tc.change != nil {
				tc.change(&s)
			}
			d := accept.Decide(s)
			assert.Equal(t, tc.want, want{d.Action, d.GrantID, d.Reason}, d.Message)
			assert.Equal(t, d.Action == accept.Refuse, d.Message != "", "a refusal says why")
		})
	}
}

func accepted(id string, intent func(string) *store.Intent, op *v1alpha1.Operation) func(*accept.Situation) {
	return func(s *accept.Situation) {
		s.Status.Accepted, s.Status.LastOperation = &v1alpha1.Acceptance{GrantID: id}, op
		if intent != nil {
			s.Intent = intent
		}
	}
}
