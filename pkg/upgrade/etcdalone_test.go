package upgrade

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

const etcdURI = "https://pkgs.example/etcd/deb/"

// etcdFacts are those of an apt host with a member of etcd as a package, and nothing of Kubernetes.
func etcdFacts(version string) Facts {
	e := wellEtcd(3)
	for i := range e.Members {
		e.Members[i].Version = version
	}
	return Facts{
		Host: HostFacts{BootID: "boot-1", MachineID: "machine-1"},
		OS:   OSFacts{ID: "debian", VersionID: "12", Family: "apt", Architecture: "amd64"},
		Etcd: &e, EtcdUnit: &EtcdUnitFacts{Unit: UnitEtcd, Active: true, Installed: version, Endpoint: "https://10.0.0.1:2379"},
		Packages: PackageFacts{
			Manager:   "apt",
			Installed: []InstalledPackage{{Name: "etcd-server", Version: version + "-1", State: "installed"}, {Name: "etcd-client", Version: version + "-1", State: "installed"}},
			Sources:   []SourceFacts{{File: "/etc/apt/sources.list.d/etcd.list", URI: etcdURI, Suites: []string{"/"}, Provides: etcdPackages}},
		},
	}
}

func etcdSpec() v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleEtcd}}
}

func etcdTo(version string) v1alpha1.Assignment {
	return v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Versions: v1alpha1.Versions{Etcd: v1alpha1.ReleaseVersion(version)}}}
}

func etcdCandidates(versions ...string) []Candidate {
	var out []Candidate
	for _, v := range versions {
		for _, name := range etcdPackages {
			out = append(out, candidate(name, v+"-1", etcdURI))
		}
	}
	return out
}

func etcdInput(from, to string) PlanInput {
	return PlanInput{Machine: "etcd1", Spec: etcdSpec(), Assignment: etcdTo(to), Facts: etcdFacts(from), Candidates: etcdCandidates("3.5.27", "3.6.8", "3.6.9", "3.7.0", "3.8.0")}
}

func TestAMemberIsMovedByItsPackagesAndOneRestart(t *testing.T) {
	p := plan(t, etcdInput("3.6.8", "v3.7.0"))
	assert.Equal(t, []string{
		"Preflight", "SnapshotEtcd", "GuardEtcd", "MoveEtcdLeader",
		"InstallPackages etcd-server=3.7.0-1 etcd-client=3.7.0-1", "ReloadUnits", "RestartUnit etcd.service", "Verify",
	}, outline(p))
	assert.Equal(t, v1alpha1.DisruptionRestart, p.Disruption)
	require.NotNil(t, p.Stage)
	assert.Len(t, p.Stage.Packages, 2, "what is installed is there before the grant")
	before, install, after := p.Steps[0].Expect, p.Steps[4], p.Steps[7].Expect
	assert.Equal(t, "3.6.8", before.Etcd)
	assert.Contains(t, install.Irreversible, "etcd never goes back")
	assert.Equal(t, "3.7.0", after.Etcd)
	assert.True(t, after.EtcdMember, "it takes part again")
	assert.False(t, after.StartSandbox, "nothing here runs containers")
	assert.Empty(t, after.Runtime+after.Kubelet)
}

func TestWhatAMemberNeedsIsNotDoneTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(in *PlanInput)
		want   []string
	}{
		"it is there": {func(in *PlanInput) { in.Facts = etcdFacts("3.7.0") }, []string{}},
		"its package is there and has not been started": {func(in *PlanInput) {
			in.Facts.EtcdUnit.Installed = "3.7.0"
			in.Facts.Packages.Installed[0].Version, in.Facts.Packages.Installed[1].Version = "3.7.0-1", "3.7.0-1"
		}, []string{"Preflight", "SnapshotEtcd", "GuardEtcd", "MoveEtcdLeader", "ReloadUnits", "RestartUnit etcd.service", "Verify"}},
		"another one went first, and took the snapshot": {func(in *PlanInput) { in.Facts.Etcd.Members[2].Version = "3.7.0" },
			[]string{"Preflight", "GuardEtcd", "MoveEtcdLeader", "InstallPackages etcd-server=3.7.0-1 etcd-client=3.7.0-1", "ReloadUnits", "RestartUnit etcd.service", "Verify"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := etcdInput("3.6.8", "v3.7.0")
			tc.change(&in)
			assert.ElementsMatch(t, tc.want, outline(plan(t, in)))
		})
	}
}

func TestAMemberThatMayBringRemovedOnesBackIsWarnedOf(t *testing.T) {
	for from, tc := range map[string]struct {
		to     string
		warned bool
	}{
		"3.5.24": {"v3.6.8", true}, "3.5.25": {"v3.6.8", true}, "3.5.26": {"v3.6.8", false}, "3.6.8": {"v3.6.9", false},
	} {
		in := etcdInput(from, tc.to)
		p := plan(t, in)
		assert.Equal(t, tc.warned, slices.ContainsFunc(p.Findings, func(f Finding) bool {
			return f.Reason == FindingEtcdMembership && f.Severity == SeverityWarning && strings.Contains(f.Message, "3.5.26")
		}), from)
	}
	in := etcdInput("3.5.25", "v3.5.27")
	assert.False(t, slices.ContainsFunc(plan(t, in).Findings, func(f Finding) bool { return f.Reason == FindingEtcdMembership }), "it is on its way to what sets that right")
}

func TestAMemberThatCannotBeMovedIsRefusedWithAReason(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		change   func(in *PlanInput)
		reason   string
		says     string
		passing  bool
	}{
		"it never goes back":           {"3.7.0", "v3.6.9", nil, ReasonDowngradeRefused, "etcd never goes back", false},
		"not by a patch either":        {"3.6.9", "v3.6.8", nil, ReasonDowngradeRefused, "v3.6.9 or newer", false},
		"not where it ran that before": {"3.7.0", "v3.6.8", func(in *PlanInput) { in.Record = []v1alpha1.Versions{{Etcd: "v3.6.8"}} }, ReasonDowngradeRefused, "", false},
		"not below what is installed": {"3.6.8", "v3.6.9", func(in *PlanInput) {
			in.Facts.EtcdUnit.Installed, in.Facts.Packages.Installed[0].Version = "3.7.0", "3.7.0-1"
		}, ReasonDowngradeRefused, "3.7.0", false},
		"it leaves no minor out":              {"3.5.27", "v3.7.0", nil, ReasonEtcdMinorSkipped, "one minor at a time", false},
		"3.6 has a floor":                     {"3.5.20", "v3.6.8", nil, FindingEtcdTooOld, "3.5.24", false},
		"another member is below the floor":   {"3.5.27", "v3.6.8", func(in *PlanInput) { in.Facts.Etcd.Members[2].Version = "3.5.19" }, FindingEtcdTooOld, "cp3 (3.5.19)", true},
		"another member is two minors behind": {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Facts.Etcd.Members[1].Version = "3.5.27" }, ReasonWaitingForEtcd, "cp2 (3.5.27)", true},
		"another member is down":              {"3.6.8", "v3.7.0", func(in *PlanInput) { sick(in.Facts.Etcd, 1) }, FindingEtcdUnhealthy, "cp2 (connection refused)", true},
		"a learner is among them":             {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Facts.Etcd.Members[1].Learner = true }, FindingEtcdLearner, "cp2", true},
		"nobody could be asked": {"3.6.8", "v3.7.0", func(in *PlanInput) {
			in.Facts.Etcd = nil
			in.Facts.Problems = []Problem{{fieldEtcd, "certificate signed by unknown authority"}}
		}, ReasonVersionUnknown, "unknown authority", true},
		"what a restart would start is not known": {"3.6.8", "v3.7.0", func(in *PlanInput) {
			in.Facts.EtcdUnit.Installed = ""
			in.Facts.Problems = []Problem{{fieldEtcdInstalled, "no such file"}}
		}, ReasonVersionUnknown, "no such file", true},
		"the unit starts another program than the package's": {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Facts.Packages.Installed[0].Version = "3.4.23-1" }, ReasonNotPackaged, "installed otherwise", false},
		"nothing of it is a package":                         {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Facts.Packages.Installed = nil }, ReasonNotPackaged, "etcd-server, etcd", false},
		"no repository has it":                               {"3.6.8", "v3.6.12", nil, ReasonVersionNotFound, "for spec.versions.etcd: no package etcd-server with version 3.6.12", false},
		"the role is missing":                                {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Spec = worker() }, ReasonRoleMismatch, "no Etcd", false},
		"the host has none":                                  {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Facts.Etcd, in.Facts.EtcdUnit = nil, nil }, ReasonRoleMismatch, "no unit etcd.service", false},
		"it is not known whether it has one":                 {"3.6.8", "v3.7.0", func(in *PlanInput) { in.Facts.EtcdUnit = nil; in.Facts.Problems = []Problem{{fieldEtcdUnit, "no bus"}} }, ReasonVersionUnknown, "no bus", true},
		"it is a control plane's": {"3.6.8", "v3.7.0", func(in *PlanInput) {
			in.Spec.Roles = append(in.Spec.Roles, v1alpha1.RoleControlPlane)
			in.Facts.Control = &ControlFacts{APIServer: "v1.36.3", ControllerManager: "v1.36.3", Scheduler: "v1.36.3", Manifests: map[string]string{"kube-apiserver": "v1.36.3"}}
		}, ReasonEtcdUnsupported, "without a control plane", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := etcdInput(tc.from, tc.to)
			if tc.change != nil {
				tc.change(&in)
			}
			_, err := NewPlan(in)
			blocked := requireBlocked(t, err, tc.reason)
			assert.Contains(t, blocked.Message, tc.says)
			assert.Equal(t, tc.passing, !blocked.Terminal)
		})
	}
}

func TestPackagesOfEtcdMoveBySpecVersionsAlone(t *testing.T) {
	in := etcdInput("3.6.8", "v3.6.8")
	in.Assignment.Target = v1alpha1.Target{OS: true}
	in.Spec.OS = &v1alpha1.OSSpec{Packages: []v1alpha1.Package{{Name: "etcd-server", Version: "3.7.0-1"}}}
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, ReasonPackageInvalid).Message, "spec.versions.etcd")
	in.Spec.OS = &v1alpha1.OSSpec{SecurityUpdates: v1alpha1.SecurityUpdatesApply}
	assert.Subset(t, SecurityRequest(in.Spec).Packages, etcdPackages, "the lane of security updates leaves them alone")
}

func TestARebootOfAHostWithEtcdAloneIsGuardedAndStartsNoSandbox(t *testing.T) {
	in := etcdInput("3.6.8", "v3.6.8")
	in.Assignment.Target = v1alpha1.Target{OS: true}
	in.Spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
	in.Facts.Reboot.Required = true
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "GuardEtcd", "MoveEtcdLeader", "Reboot", "Verify"}, outline(p))
	assert.False(t, p.Steps[4].Expect.StartSandbox)
	assert.True(t, p.Steps[4].Expect.EtcdMember)
	assert.Equal(t, "3.6.8", p.Steps[4].Expect.Etcd)
}

func TestARebootStartsNoOtherMinorOfEtcd(t *testing.T) {
	for name, tc := range map[string]struct {
		installed, starts, reason string
	}{
		"what runs":     {"3.6.8", "3.6.8", ""},
		"a patch":       {"3.6.9", "3.6.9", ""},
		"another minor": {"3.7.0", "", ReasonRestartPending},
		"an older one":  {"3.6.7", "", ReasonRestartPending},
		"nobody knows":  {"", "", ReasonVersionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			in := etcdInput("3.6.8", "v3.6.8")
			in.Assignment.Target = v1alpha1.Target{OS: true}
			in.Spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
			in.Facts.Reboot.Required, in.Facts.EtcdUnit.Installed = true, tc.installed
			p, err := NewPlan(in)
			if tc.reason != "" {
				assert.False(t, requireBlocked(t, err, tc.reason).Terminal)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.starts, p.Steps[len(p.Steps)-1].Expect.Etcd)
		})
	}
}

func TestThePackageSourceOfEtcdFollowsItsMinor(t *testing.T) {
	in := etcdInput("3.6.8", "v3.7.0")
	in.Spec.PackageSources = []v1alpha1.PackageSource{{Name: SourceEtcd, URI: "https://mirror/etcd/{minor}/deb/", SignedBy: "etcd"}}
	request, changes, err := Sources(in.Facts, in.Assignment.Target, in.Spec)
	require.NoError(t, err)
	assert.Equal(t, []string{"etcd-client", "etcd-server"}, request.Packages)
	require.Len(t, changes, 1)
	assert.Equal(t, "https://mirror/etcd/v3.7/deb/", changes[0].To)
}

// etcdAt is a machine with etcd alone.
func etcdAt(name, now, wish string) HostState {
	h := HostState{Name: name, Managed: true, Roles: []v1alpha1.Role{v1alpha1.RoleEtcd}, Versions: v1alpha1.ObservedVersions{Etcd: now}}
	h.Wish.Etcd = v1alpha1.ReleaseVersion(wish)
	return h
}

func TestMembersOfEtcdGoThroughEveryMinorTogetherAndBeforeTheControlPlane(t *testing.T) {
	cp := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
	fleet := Fleet{
		Hosts:    []HostState{cp, etcdAt("e1", "3.5.27", "v3.7.0"), etcdAt("e2", "3.5.27", "v3.7.0"), etcdAt("e3", "3.5.27", "v3.7.0")},
		HopPatch: map[string]string{"v3.6": "v3.6.9"},
	}
	hops, blocked := Hops(fleet)
	require.Empty(t, blocked)
	var way []string
	for _, h := range hops {
		way = append(way, h.Machine+" "+firstOf(string(h.Target.Etcd), string(h.Target.ControlPlane)))
	}
	assert.Equal(t, []string{"e1 v3.6.9", "e2 v3.6.9", "e3 v3.6.9", "e1 v3.7.0", "e2 v3.7.0", "e3 v3.7.0", "cp1 v1.37.2"}, way)
}

func TestTheNextHopOfAMember(t *testing.T) {
	for name, tc := range map[string]struct {
		host   HostState
		peers  []HostState
		patch  map[string]string
		target string
		reason string
	}{
		"a patch":                               {etcdAt("e1", "3.6.8", "v3.6.9"), nil, nil, "v3.6.9", ""},
		"a minor":                               {etcdAt("e1", "3.6.8", "v3.7.0"), []HostState{etcdAt("e2", "3.7.0", "v3.7.0")}, nil, "v3.7.0", ""},
		"nothing":                               {etcdAt("e1", "3.7.0", "v3.7.0"), nil, nil, "", ""},
		"what the others pass through":          {etcdAt("e1", "3.5.27", "v3.7.0"), []HostState{etcdAt("e2", "3.6.8", "v3.7.0")}, nil, "v3.6.8", ""},
		"what is known to be passed through":    {etcdAt("e1", "3.5.27", "v3.7.0"), nil, map[string]string{"v3.6": "v3.6.9"}, "v3.6.9", ""},
		"what to pass through is not known":     {etcdAt("e1", "3.5.27", "v3.7.0"), nil, nil, "", ReasonHopVersionUnknown},
		"another one is two minors behind":      {etcdAt("e1", "3.6.8", "v3.7.0"), []HostState{etcdAt("e2", "3.5.27", "v3.5.27")}, nil, "", ReasonWaitingForEtcd},
		"another one does not say what it runs": {etcdAt("e1", "3.6.8", "v3.7.0"), []HostState{etcdAt("e2", v1alpha1.Unknown, "")}, nil, "", ReasonVersionUnknown},
		"it does not say what it runs":          {etcdAt("e1", v1alpha1.Unknown, "v3.7.0"), nil, nil, "", ReasonVersionUnknown},
		"another one is below the floor":        {etcdAt("e1", "3.5.27", "v3.6.8"), []HostState{etcdAt("e2", "3.5.19", "v3.6.8")}, nil, "", FindingEtcdTooOld},
		"it is below the floor":                 {etcdAt("e1", "3.5.19", "v3.6.8"), nil, nil, "", FindingEtcdTooOld},
		"back":                                  {etcdAt("e1", "3.7.0", "v3.6.8"), nil, nil, "", ReasonDowngradeRefused},
		"no version":                            {etcdAt("e1", "3.7.0", "latest"), nil, nil, "", ReasonVersionInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			target, _, _, blocked := NextTarget(Fleet{Hosts: append(tc.peers, tc.host), HopPatch: tc.patch}, tc.host, tc.host.Wish)
			if tc.reason != "" {
				requireBlocked(t, blocked, tc.reason)
				return
			}
			require.Nil(t, blocked)
			assert.Equal(t, tc.target, string(target.Etcd))
		})
	}
}

func TestWhatIsPendingBesideRidesOnTheLastHopOfAMember(t *testing.T) {
	host := etcdAt("e1", "3.5.27", "v3.7.0")
	host.OSPending = true
	patch := map[string]string{"v3.6": "v3.6.9"}
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{host}, HopPatch: patch}, host, host.Wish)
	require.Nil(t, blocked)
	assert.False(t, target.OS)
	host.Versions.Etcd = "3.6.9"
	target, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{host}, HopPatch: patch}, host, host.Wish)
	require.Nil(t, blocked)
	assert.True(t, target.OS)
}

func TestAControlPlaneWaitsOnlyForMembersThatAreOnTheirWay(t *testing.T) {
	cp := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
	patch := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.36.4"))
	sidelined := etcdAt("e1", "3.6.8", "v3.7.0")
	sidelined.Sidelined = true
	for name, tc := range map[string]struct {
		cp, etcd HostState
		waits    bool
	}{
		"it is on its way":           {cp, etcdAt("e1", "3.6.8", "v3.7.0"), true},
		"it is there":                {cp, etcdAt("e1", "3.7.0", "v3.7.0"), false},
		"it wants nothing":           {cp, etcdAt("e1", "3.6.8", ""), false},
		"it is sidelined":            {cp, sidelined, false},
		"it is refused":              {cp, etcdAt("e1", "3.7.0", "v3.6.8"), false},
		"a patch of a control plane": {patch, etcdAt("e1", "3.6.8", "v3.7.0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{tc.cp, tc.etcd}}, tc.cp, tc.cp.Wish)
			if tc.waits {
				assert.Contains(t, requireBlocked(t, blocked, ReasonWaitingForEtcd).Message, "e1")
				return
			}
			require.Nil(t, blocked)
		})
	}
}

func TestAMemberSaysWhatItRunsAndNothingElseDoes(t *testing.T) {
	silent := etcdFacts("3.6.8")
	silent.Etcd = nil
	stacked := controlPlaneFacts("v1.36.3", "1.7.28")
	for name, tc := range map[string]struct {
		facts Facts
		want  string
	}{
		"by its own answer":           {etcdFacts("3.6.8"), "3.6.8"},
		"not by what is on disk":      {silent, v1alpha1.Unknown},
		"one of kubeadm by its image": {stacked, "3.6.4"},
		"a worker has none":           {workerFacts("v1.36.3", "1.7.28"), ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.facts.Versions().Etcd) })
	}
}

func TestAnEtcdThatIsNobodysOfTheClusterIsNotGuarded(t *testing.T) {
	in := osInput(v1alpha1.Package{Name: "htop"})
	in.Spec.OS.Reboot, in.Facts.Reboot.Required = v1alpha1.RebootIfRequired, true
	e := wellEtcd(2)
	in.Facts.Etcd, in.Facts.EtcdUnit = &e, &EtcdUnitFacts{Unit: UnitEtcd, Active: true, Installed: "3.4.23"}
	kinds := map[StepKind]bool{}
	for _, s := range plan(t, in).Steps {
		kinds[s.Kind] = true
	}
	assert.NotContains(t, slices.Collect(maps.Keys(kinds)), StepGuardEtcd)
	in.Facts.Etcd, in.Facts.Problems = nil, []Problem{{fieldEtcd, "connection refused"}}
	assert.NotEmpty(t, plan(t, in).Steps, "and holds up nothing")
}
