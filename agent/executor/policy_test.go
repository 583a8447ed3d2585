package executor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/hostpolicy"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func rules(p hostpolicy.Policy) *upgrade.PolicyFacts {
	return &upgrade.PolicyFacts{Path: hostpolicy.Path, Rules: &p}
}

// sourcesOf is a host whose sources are what it says; nothing is fetched.
type sourcesOf []upgrade.SourceFacts

func (s sourcesOf) Sources(context.Context, []string) ([]upgrade.SourceFacts, error) { return s, nil }

// What the plan was made for does not count: the file is read anew, and what it does not
// allow is refused before the first step, with the host untouched.
func TestAnAcceptedPlanOutsideThePolicyIsRefusedWithTheHostUntouched(t *testing.T) {
	for name, tc := range map[string]struct {
		policy *upgrade.PolicyFacts
		host   func(h *hostfake.Host)
		says   string
	}{
		"a step that is denied":      {rules(hostpolicy.Policy{Steps: hostpolicy.Steps{Deny: []string{"KubeadmUpgrade"}}}), nil, `step "KubeadmUpgrade" is outside steps.deny`},
		"a hook that is not allowed": {rules(hostpolicy.Policy{Hooks: hostpolicy.Hooks{Allow: []string{}}}), nil, `hook "raid-check" is outside hooks.allow`},
		"a package that is denied":   {rules(hostpolicy.Policy{Packages: hostpolicy.Packages{Deny: []string{"containerd*"}}}), nil, `package "containerd" is outside packages.deny`},
		"a source that the host does not have": {nil, func(h *hostfake.Host) {
			h.Sources = map[string]string{"/etc/apt/sources.list.d/other.list": "http://other/deb/"}
		},
			`"http://mirror/v1.37/deb/", which is not configured on this host, is outside sources.allow`},
		"a policy that is broken": {&upgrade.PolicyFacts{Path: hostpolicy.Path, Broken: "line 1: no"}, nil, "line 1: no"},
	} {
		t.Run(name, func(t *testing.T) {
			b := worker(t)
			b.host.Policy = tc.policy
			if tc.host != nil {
				tc.host(b.host)
			}
			before := b.host.Snapshot()
			rec, err, crash := b.run()
			require.NoError(t, err)
			require.Empty(t, crash)
			assert.Equal(t, journal.Failed, rec.State)
			assert.Equal(t, upgrade.ReasonHostPolicy, rec.Reason)
			assert.Contains(t, rec.Message, tc.says)
			assert.Equal(t, before, b.host.Snapshot(), "the host is as it was")
		})
	}
}

func TestAPolicyThatAllowsThePlanLetsItRun(t *testing.T) {
	b := worker(t)
	b.host.Policy = rules(hostpolicy.Policy{
		Packages: hostpolicy.Packages{Allow: []string{"kube*", "containerd"}}, Hooks: hostpolicy.Hooks{Allow: []string{"raid-*"}}, Steps: hostpolicy.Steps{Deny: []string{"Reboot"}},
	})
	rec, err, _ := b.run()
	require.NoError(t, err)
	assert.Equal(t, journal.Successful, rec.State, rec.Message)
}

// What has begun is finished: a policy that comes in the middle is for the next plan.
func TestAPolicyThatComesLaterStopsNoOperation(t *testing.T) {
	b := worker(t)
	b.host.CrashAt = 60
	_, _, crash := b.run()
	require.NotEmpty(t, crash)
	b.host.CrashAt = 0
	b.host.Policy = rules(hostpolicy.Policy{Hooks: hostpolicy.Hooks{Allow: []string{}}})
	rec, err, _ := b.run()
	require.NoError(t, err)
	assert.Equal(t, journal.Successful, rec.State, rec.Message)
}

func TestAPlanOutsideThePolicyIsNotStaged(t *testing.T) {
	packages := &stagePackages{}
	s := Stager{Packages: packages, Policy: policyReader{rules(hostpolicy.Policy{Packages: hostpolicy.Packages{Deny: []string{"kubelet"}}})}, Sources: sourcesOf{{URI: "http://mirror/v1.36/deb/"}}}
	plan := workerPlan()
	plan.Stage = &upgrade.Step{Kind: upgrade.StepStage, Packages: []upgrade.PackageChange{kubernetes("kubelet")}}
	result, err := s.Stage(t.Context(), plan)
	require.NoError(t, err)
	require.True(t, result.Refused())
	assert.Equal(t, upgrade.ReasonHostPolicy, result.Findings[0].Reason)
	assert.False(t, packages.staged, "nothing is fetched")
}

type policyReader struct{ facts *upgrade.PolicyFacts }

func (p policyReader) Read() *upgrade.PolicyFacts { return p.facts }

type stagePackages struct{ staged bool }

func (s *stagePackages) Stage(context.Context, []upgrade.PackageChange) ([]upgrade.Finding, error) {
	s.staged = true
	return nil, nil
}

func (s *stagePackages) Unpack(context.Context, upgrade.PackageChange) (string, func() error, error) {
	return "", func() error { return nil }, nil
}
