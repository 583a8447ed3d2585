package planning_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// patched answers a request for security updates apart from the others.
type patched struct {
	*executor
	updates []upgrade.Candidate
	err     error
	asked   []string
}

func (x *patched) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	if request.Security {
		x.asked = request.Packages
		return x.updates, x.err
	}
	return x.executor.Candidates(ctx, request)
}

func wishing(t *testing.T, packages ...v1alpha1.Package) *v1alpha1.Machine {
	t.Helper()
	m := machine()
	m.Spec.OS = &v1alpha1.OSSpec{SecurityUpdates: v1alpha1.SecurityUpdatesApply, Packages: packages}
	return m
}

func TestSecurityUpdatesAreLookedUpWhenThePlanIsMade(t *testing.T) {
	x := &patched{executor: opensslHost(), updates: []upgrade.Candidate{{Name: "curl", From: "1", Version: "2", Source: debian, Path: "c.deb", SHA256: "y"}}}
	out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), wishing(t))
	require.Nil(t, out.Refused)
	assert.Equal(t, "InstallPackages: curl 2", out.Frozen.Plan.Steps[1].Describe())
	assert.Contains(t, x.asked, "kubelet", "what has a field of its own is not asked for")
	require.NotNil(t, out.Security)
	assert.Equal(t, x.updates, *out.Security, "the host reports what was found")
}

func TestASecuritySourceThatIsAwayKeepsBackNothingElse(t *testing.T) {
	x := &patched{executor: opensslHost(), err: errors.New("the mirror is away")}
	out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), wishing(t, v1alpha1.Package{Name: "openssl", Version: "3.0.15-1"}))
	require.Nil(t, out.Refused)
	require.NotEmpty(t, out.Frozen.Plan.Steps)
	assert.Equal(t, upgrade.FindingSecurityUpdatesUnknown, out.Frozen.Plan.Findings[0].Reason)
	assert.Contains(t, out.Frozen.Plan.Findings[0].Message, "the mirror is away")
	assert.Nil(t, out.Security)
}

// An empty plan would say that all is done.
func TestASecuritySourceThatIsAwayIsNoReasonToSayThatAllIsDone(t *testing.T) {
	x := &patched{executor: opensslHost(), err: &upgrade.Blocked{Reason: "RepoUnreachable", Message: "the mirror is away"}}
	out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), wishing(t))
	require.NotNil(t, out.Refused)
	assert.Equal(t, "RepoUnreachable", out.Refused.Reason)
	assert.False(t, out.Refused.Terminal)
}

func TestNobodyAsksForSecurityUpdatesThatSpecDoesNotWant(t *testing.T) {
	x := &patched{executor: opensslHost(), err: errors.New("asked")}
	out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), machine())
	require.Nil(t, out.Refused)
	assert.Nil(t, x.asked)
}
