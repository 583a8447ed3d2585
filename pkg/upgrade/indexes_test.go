package upgrade

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestWhatASourceOffersIsKnownOnlyForThePackagesThatWereLookedFor(t *testing.T) {
	source := CandidateSource{URI: debianURI, Suites: []string{"bookworm"}, Components: []string{"main"}}
	asked := CandidateRequest{Sources: []CandidateSource{source}, Packages: []string{"containerd"}}
	facts := Facts{Packages: PackageFacts{Indexes: IndexesOf(asked, []Candidate{candidate("containerd", "2.1.4-1", debianURI), candidate("kubelet", "1", k8sURI)})}}
	for name, tc := range map[string]struct {
		change  func(*CandidateRequest)
		offered int
		unknown bool
	}{
		"what was looked for":           {func(*CandidateRequest) {}, 1, false},
		"a slash at the end of the URI": {func(r *CandidateRequest) { r.Sources[0].URI += "/" }, 1, false},
		"another package":               {func(r *CandidateRequest) { r.Packages = []string{"containerd", "openssl"} }, 0, true},
		"another suite":                 {func(r *CandidateRequest) { r.Sources[0].Suites = []string{"trixie"} }, 0, true},
		"another repository":            {func(r *CandidateRequest) { r.Sources[0].URI = "https://other.example" }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			request := CandidateRequest{Sources: []CandidateSource{source}, Packages: asked.Packages}
			tc.change(&request)
			offered, unknown := facts.Offered(request)
			assert.Len(t, offered, tc.offered)
			assert.Equal(t, tc.unknown, len(unknown) == 1)
		})
	}
}

func TestNoSuiteIsTheFlatOne(t *testing.T) {
	for name, tc := range map[string]struct {
		index, source []string
		known         bool
	}{
		"none and none":         {nil, nil, true},
		"none and the flat one": {nil, []string{"/"}, true},
		"the flat one and none": {[]string{"/"}, nil, true},
		"a suite and none":      {[]string{"bookworm"}, nil, false},
		"none and a suite":      {nil, []string{"bookworm"}, false},
		"two, one of them flat": {[]string{"/", "bookworm"}, []string{"/"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := CandidateRequest{Sources: []CandidateSource{{URI: k8sURI, Suites: tc.source}}, Packages: []string{"kubelet"}}
			facts := Facts{Packages: PackageFacts{Indexes: []IndexFacts{{URI: k8sURI, Suites: tc.index, Packages: request.Packages, Candidates: []Candidate{candidate("kubelet", "1", k8sURI)}}}}}
			offered, unknown := facts.Offered(request)
			assert.Equal(t, tc.known, len(unknown) == 0)
			assert.Equal(t, tc.known, len(offered) == 1)
		})
	}
}

func TestWhatIsOfferedWithoutADigestIsNotKnown(t *testing.T) {
	source := CandidateSource{URI: debianURI, Suites: []string{"bookworm"}}
	request := CandidateRequest{Sources: []CandidateSource{source}, Packages: []string{"containerd", "runc"}}
	bare, other := candidate("containerd", "2.1.4-1", debianURI), candidate("openssl", "3", debianURI)
	for _, none := range []string{"", "abc", bare.SHA256[1:], bare.SHA256 + "0", "sha256:" + bare.SHA256, strings.Repeat("g", 64)} {
		bare.SHA256, other.SHA256 = none, none
		offeredWithoutDigest(t, request, bare, other)
	}
}

func offeredWithoutDigest(t *testing.T, request CandidateRequest, bare, other Candidate) {
	t.Helper()
	facts := Facts{Packages: PackageFacts{Indexes: IndexesOf(request, []Candidate{candidate("runc", "1.1", debianURI), other})}}
	offered, unknown := facts.Offered(request)
	assert.Len(t, offered, 1)
	assert.Empty(t, unknown, "nobody asked for the one without")
	facts.Packages.Indexes = IndexesOf(request, []Candidate{candidate("runc", "1.1", debianURI), bare})
	offered, unknown = facts.Offered(request)
	assert.Len(t, offered, 1)
	assert.Equal(t, []string{debianURI}, unknown)
}

func TestAnEstimateNamesNoFileAndHasNoHash(t *testing.T) {
	for name, facts := range map[string]Facts{
		"packages known, repositories not": workerFacts("v1.36.3", "2.1.4"),
		"on a system that is not known": func() Facts {
			f := workerFacts("v1.36.3", "2.1.4")
			f.Packages.Manager, f.Packages.Sources = "", nil
			return f
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			in := PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: facts}
			_, err := NewPlan(in)
			require.Error(t, err, "no plan is made on a guess")
			in.Estimate = true
			plan, err := NewPlan(in)
			require.NoError(t, err)
			assert.Equal(t, v1alpha1.DisruptionDrain, plan.Disruption)
			assert.Empty(t, plan.Hash)
			assert.Nil(t, plan.Stage)
			require.NotEmpty(t, plan.Steps)
			for _, step := range plan.Steps {
				for _, change := range step.Packages {
					assert.Empty(t, change.SHA256+change.URI+change.File)
				}
			}
		})
	}
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.35.0", "v1.37.2"), Facts: workerFacts("v1.36.3", "2.1.4"), Estimate: true}
	_, err := NewPlan(in)
	requireBlocked(t, err, ReasonDowngradeRefused)
}

func TestAHopThatIsRefusedLeavesItsMachineAndWhoWaitsForIt(t *testing.T) {
	host := func(name, version string, role v1alpha1.Role) HostState {
		h := HostState{Name: name, Roles: []v1alpha1.Role{role}, Managed: true}
		h.Versions.Kubelet, h.Wish.Kubelet = version, "v1.37.2"
		if role == v1alpha1.RoleControlPlane {
			h.APIServer = APIServerOnHost
			h.Versions.ControlPlane, h.Wish.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: version, ControllerManager: version, Scheduler: version}, "v1.37.2"
		}
		return h
	}
	fleet := Fleet{Hosts: []HostState{host("cp", "v1.36.3", v1alpha1.RoleControlPlane), host("w", "v1.36.3", v1alpha1.RoleWorker)}}
	hops, blocked := JudgedHops(fleet, func(hop Hop) *Blocked { return &Blocked{Reason: "Never", Message: hop.Machine} })
	assert.Empty(t, hops)
	require.Len(t, blocked, 2)
	assert.Equal(t, "Never", blocked["cp"].Reason)
	assert.Equal(t, ReasonWaitingForControlPlane, blocked["w"].Reason)
}
