package planning_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// executor answers by fields, and notes what it was asked.
type executor struct {
	facts    upgrade.Facts
	offers   []upgrade.Candidate
	staged   launch.StageResult
	fail     map[string]error
	calls    []string
	packages []string
}

func (x *executor) do(call string) error {
	x.calls = append(x.calls, call)
	return x.fail[call]
}

func (x *executor) Facts(_ context.Context, packages []string) (upgrade.Facts, error) {
	x.packages = packages
	return x.facts, x.do("facts")
}

func (x *executor) Candidates(context.Context, upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	return x.offers, x.do("candidates")
}

func (x *executor) Stage(context.Context, upgrade.Plan) (launch.StageResult, error) {
	return x.staged, x.do("stage")
}

const debian = "http://deb.example/debian"

// opensslHost could have openssl newer.
func opensslHost() *executor {
	return &executor{
		facts: upgrade.Facts{
			OS: upgrade.OSFacts{ID: "debian", VersionID: "12", Family: "apt"}, Host: upgrade.HostFacts{BootID: "b"},
			Packages: upgrade.PackageFacts{
				Manager:   "apt",
				Installed: []upgrade.InstalledPackage{{Name: "openssl", Version: "3.0.14-1", State: "installed"}},
				Sources:   []upgrade.SourceFacts{{File: "/etc/apt/sources.list", URI: debian, Suites: []string{"bookworm"}, Provides: []string{"openssl"}}},
			},
		},
		offers: []upgrade.Candidate{{Name: "openssl", Version: "3.0.15-1", Source: debian, Path: "openssl.deb", SHA256: "x", Size: 1}},
		staged: launch.StageResult{Duration: 3 * time.Second, Findings: []upgrade.Finding{{Severity: "Warning", Reason: "NoRollback", Message: "m"}}},
	}
}

func machine() *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Name = "w1"
	m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
	m.Spec.OS = &v1alpha1.OSSpec{Packages: []v1alpha1.Package{{Name: "openssl", Version: "3.0.15-1"}}}
	m.Status.Assignment = &v1alpha1.Assignment{ID: "4-a", Generation: 4, Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{OS: true}}
	return m
}

func TestPlanIsStagedAndFrozen(t *testing.T) {
	x, records := opensslHost(), store.New(t.TempDir())
	out := (&planning.Planner{Executor: x, Records: records}).Plan(t.Context(), machine())
	require.Nil(t, out.Refused)
	require.NotNil(t, out.Frozen)
	assert.Equal(t, []string{"facts", "candidates", "stage"}, x.calls)
	assert.Equal(t, []string{"openssl"}, x.packages, "the facts cover what spec names")
	assert.EqualValues(t, 4, out.Frozen.Generation)
	assert.Equal(t, 3*time.Second, out.Frozen.StageDuration)
	assert.Contains(t, out.Frozen.Plan.Findings, x.staged.Findings[0], "what staging found is part of the plan")
	onDisk, err := records.Plan("4-a")
	require.NoError(t, err)
	assert.Equal(t, out.Frozen.Plan.Hash, onDisk.Plan.Hash)
}

func TestEachFailureHasItsReasonAndFreezesNothing(t *testing.T) {
	plain := errors.New("it did not work")
	for name, tc := range map[string]struct {
		change   func(x *executor)
		reason   string
		terminal bool
	}{
		"the host cannot be probed":             {failing("facts", plain), planning.ReasonProbeFailed, false},
		"the repository is away":                {failing("candidates", plain), planning.ReasonSourceUnavailable, false},
		"the executor says why":                 {failing("candidates", &upgrade.Blocked{Reason: "KeyExpired", Message: "m", Terminal: true}), "KeyExpired", true},
		"the version is nowhere":                {func(x *executor) { x.offers = nil }, upgrade.ReasonVersionNotFound, true},
		"a hold may be there that was not seen": {unreadable("packages.holds"), upgrade.FindingFactUnknown, false},
		"packages may be in pieces":             {unreadable("packages.broken"), upgrade.FindingFactUnknown, false},
		"free space was not looked at":          {unreadable("mounts"), upgrade.FindingFactUnknown, false},
		"the host may be another node":          {unreadable("node"), upgrade.FindingFactUnknown, false},
		"the staging breaks":                    {failing("stage", plain), planning.ReasonStageFailed, false},
		"the disk is full while it asks":        {failing("candidates", fmt.Errorf("x: %w", syscall.ENOSPC)), "NoSpace", false},
		"the staging refuses":                   {refusing("DiskFull"), "DiskFull", true},
		"the staging refuses without words":     {func(x *executor) { x.staged = launch.StageResult{Refused: true} }, planning.ReasonStageFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, records := opensslHost(), store.New(t.TempDir())
			tc.change(x)
			out := (&planning.Planner{Executor: x, Records: records}).Plan(t.Context(), machine())
			assert.Nil(t, out.Frozen)
			require.NotNil(t, out.Refused)
			assert.Equal(t, tc.reason, out.Refused.Reason)
			assert.Equal(t, tc.terminal, out.Refused.Terminal)
			assert.NotEmpty(t, out.Refused.Message)
			_, err := records.Plan("4-a")
			assert.Error(t, err)
		})
	}
}

// A host without a kubelet is told so, not that no repository offers one.
func TestWhatNoRepositoryCouldMakeRightIsRefusedBeforeAnyIsAsked(t *testing.T) {
	x := opensslHost()
	x.facts.Problems = []upgrade.Problem{{Field: "kubelet", Message: "systemd does not answer"}}
	m := machine()
	m.Status.Assignment.Target.Kubelet = "v1.37.2"
	out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), m)
	require.NotNil(t, out.Refused)
	assert.Equal(t, upgrade.ReasonVersionUnknown, out.Refused.Reason)
	assert.Contains(t, out.Refused.Message, "no kubelet was found on this host (systemd does not answer)")
	assert.Equal(t, []string{"facts"}, x.calls)
}

func TestNoRepositoryIsAskedWhereThereIsNothingToDo(t *testing.T) {
	x := opensslHost()
	x.facts.Packages.Installed[0].Version = "3.0.15-1"
	x.fail = map[string]error{"candidates": errors.New("the repository is away")}
	out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), machine())
	require.Nil(t, out.Refused)
	assert.Empty(t, out.Frozen.Plan.Steps)
	assert.Equal(t, []string{"facts", "stage"}, x.calls)
}

// sourcesApart offers by the sources that it is asked for; one of them is away.
type sourcesApart struct {
	*executor
	offers map[string][]upgrade.Candidate
	asked  [][]string
}

func (x *sourcesApart) Candidates(_ context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	var found []upgrade.Candidate
	var uris []string
	for _, s := range request.Sources {
		uris = append(uris, s.URI)
	}
	x.asked = append(x.asked, uris)
	for _, uri := range uris {
		offered, there := x.offers[uri]
		if !there {
			return nil, &upgrade.Blocked{Reason: "RepoUnreachable", Message: uri + " is away"}
		}
		found = append(found, offered...)
	}
	return found, nil
}

func TestASourceThatIsAwayKeepsBackOnlyWhatItMayHave(t *testing.T) {
	const foreign = "http://foreign.example/deb"
	newer := opensslHost().offers
	telnet := upgrade.Candidate{Name: "telnet", Version: "1", Source: foreign, Path: "telnet.deb", SHA256: "y", Size: 1}
	for name, tc := range map[string]struct {
		offers map[string][]upgrade.Candidate
		reason string
		asked  [][]string
	}{
		"it is away, and nothing is needed of it":  {map[string][]upgrade.Candidate{debian: append(newer, telnet)}, "", [][]string{{debian}}},
		"it is away, and may have what is nowhere": {map[string][]upgrade.Candidate{debian: newer}, "RepoUnreachable", [][]string{{debian}, {debian, foreign}}},
		"it has what is nowhere else":              {map[string][]upgrade.Candidate{debian: newer, foreign: {telnet}}, "", [][]string{{debian}, {debian, foreign}}},
		"the likely one is away":                   {map[string][]upgrade.Candidate{foreign: {telnet}}, "RepoUnreachable", [][]string{{debian}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sourcesApart{executor: opensslHost(), offers: tc.offers}
			x.facts.Packages.Sources = append(x.facts.Packages.Sources, upgrade.SourceFacts{File: "/etc/apt/sources.list.d/foreign.list", URI: foreign, Suites: []string{"/"}})
			m := machine()
			m.Spec.OS.Packages = append(m.Spec.OS.Packages, v1alpha1.Package{Name: "telnet", Version: "1"})
			out := (&planning.Planner{Executor: x, Records: store.New(t.TempDir())}).Plan(t.Context(), m)
			assert.Equal(t, tc.asked, x.asked)
			if tc.reason == "" {
				require.Nil(t, out.Refused)
				return
			}
			require.NotNil(t, out.Refused)
			assert.Equal(t, tc.reason, out.Refused.Reason)
		})
	}
}

func failing(call string, err error) func(*executor) {
	return func(x *executor) { x.fail = map[string]error{call: err} }
}

// unreadable is a host of which one probe failed.
func unreadable(field string) func(*executor) {
	return func(x *executor) {
		x.facts.Problems = []upgrade.Problem{{Field: field, Message: "input/output error"}}
	}
}

func refusing(reason string) func(*executor) {
	return func(x *executor) {
		x.staged = launch.StageResult{Refused: true, Findings: []upgrade.Finding{
			{Severity: "Info", Reason: "Fine", Message: "all well"}, {Severity: "Error", Reason: reason, Message: "/var has no room"},
		}}
	}
}
