package upgrade

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestAControlPlaneMinorWithANewRuntimeIsOneDrainedWindow(t *testing.T) {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime = containerdAt("2.4.2")
	plan, err := NewPlan(PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: controlPlaneFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.1", "v1.37.2"}, []string{"1.7.28", "2.4.2"})})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Preflight",
		"SnapshotEtcd", "GuardEtcd", "MoveEtcdLeader",
		"SwitchSource https://pkgs.example/core:/stable:/v1.37/deb/",
		"UnholdPackages kubeadm",
		"InstallPackages kubeadm=1.37.2-1.1",
		"HoldPackages kubeadm",
		"KubeadmUpgrade First v1.37.2",
		"StopSandboxes kubelet.service",
		"InstallPackages containerd=2.4.2-1",
		"ReloadUnits",
		"RestartUnit containerd.service",
		"UnholdPackages kubelet kubectl",
		"InstallPackages kubelet=1.37.2-1.1 kubectl=1.37.2-1.1",
		"HoldPackages kubelet kubectl",
		"ReloadUnits",
		"RestartUnit kubelet.service",
		"Verify",
	}, outline(plan))
	assert.Equal(t, v1alpha1.DisruptionDrain, plan.Disruption)
	require.NotNil(t, plan.Stage)
	assert.Len(t, plan.Stage.Packages, 4)
	verify := plan.Steps[len(plan.Steps)-1].Expect
	assert.Equal(t, "v1.37.2", verify.Kubelet)
	assert.Equal(t, "v1.37.2", verify.ControlPlane)
	assert.Equal(t, "2.4.2", verify.Runtime)
	assert.True(t, verify.StartSandbox)
	assert.Regexp(t, "^sha256:[0-9a-f]{64}$", plan.Hash)
}

func TestAWorkerHopUpgradesItsKubeletConfigurationFirst(t *testing.T) {
	plan, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Preflight",
		"SwitchSource https://pkgs.example/core:/stable:/v1.37/deb/",
		"UnholdPackages kubeadm",
		"InstallPackages kubeadm=1.37.2-1.1",
		"HoldPackages kubeadm",
		"KubeadmUpgrade Other v1.37.2",
		"UnholdPackages kubelet kubectl",
		"InstallPackages kubelet=1.37.2-1.1 kubectl=1.37.2-1.1",
		"HoldPackages kubelet kubectl",
		"ReloadUnits",
		"RestartUnit kubelet.service",
		"Verify",
	}, outline(plan))
}

func TestWhatIsAlreadyThereNeedsNoPlan(t *testing.T) {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime = containerdAt("2.4.2")
	plan, err := NewPlan(PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: controlPlaneFacts("v1.37.2", "2.4.2")})
	require.NoError(t, err)
	assert.True(t, plan.Empty())
	assert.Equal(t, v1alpha1.DisruptionNone, plan.Disruption)
	assert.Nil(t, plan.Stage)
}

// A request that no repository can serve, as a person would make it by mistake.
func TestAVersionThatNoRepositoryHasIsRefusedWithWhatThereIs(t *testing.T) {
	_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.99", "v1.37.2"), Facts: workerFacts("v1.37.2", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.1", "v1.37.2"}, nil)})
	blocked := requireBlocked(t, err, ReasonVersionNotFound)
	assert.True(t, blocked.Terminal)
	assert.Contains(t, blocked.Message, "1.37.99")
	assert.Contains(t, blocked.Message, "1.37.2-1.1, 1.37.1-1.1")
	assert.Contains(t, blocked.Message, "https://pkgs.example/core:/stable:/v1.37/deb/")
	assert.NotContains(t, blocked.Message, "retry", "a corrected spec is planned for by itself")
}

func TestAVersionThatWasNotFoundNamesTheFieldThatAskedForIt(t *testing.T) {
	runtimeOnly := v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("1.7.99")}}}
	for name, tc := range map[string]struct {
		spec       v1alpha1.MachineSpec
		assignment v1alpha1.Assignment
		facts      Facts
		says       string
	}{
		"kubelet":                     {worker(), kubeletTo("v1.37.99", "v1.37.99"), workerFacts("v1.37.2", "1.7.28"), "for spec.versions.kubelet: no package kube"},
		"kubeadm for a control plane": {controlPlane(), controlPlaneTo("v1.37.99"), controlPlaneFacts("v1.37.2", "1.7.28"), "for spec.versions.controlPlane: no package kubeadm with version 1.37.99"},
		"runtime":                     {worker(), runtimeOnly, workerFacts("v1.37.2", "1.7.28"), "for spec.versions.containerRuntime.version: no package containerd"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlan(PlanInput{Machine: "w1", Spec: tc.spec, Assignment: tc.assignment, Facts: tc.facts, Candidates: candidatesOf([]string{"v1.37.1", "v1.37.2"}, []string{"1.7.28"})})
			blocked := requireBlocked(t, err, ReasonVersionNotFound)
			assert.True(t, blocked.Terminal)
			assert.Contains(t, blocked.Message, tc.says)
		})
	}
}

// plan makes a plan that must be made.
func plan(t *testing.T, in PlanInput) Plan {
	t.Helper()
	p, err := NewPlan(in)
	require.NoError(t, err)
	return p
}

func TestDisruptionIsTheLeastThatTheChangeNeeds(t *testing.T) {
	runtimeTo := func(version string) v1alpha1.Assignment {
		return v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(version)}}}
	}
	skip := worker()
	skip.Drain = &v1alpha1.DrainSpec{SkipForMinor: true}
	controlOnly := controlPlaneTo("v1.36.4")
	controlOnly.Target.Kubelet = ""
	controlMinor := controlPlaneTo("v1.37.2")
	controlMinor.Target.Kubelet = ""
	for name, tc := range map[string]struct {
		spec       v1alpha1.MachineSpec
		assignment v1alpha1.Assignment
		want       v1alpha1.Disruption
		sandboxes  bool // stopped
	}{
		"kubelet patch":                      {worker(), kubeletTo("v1.36.4", "v1.36.4"), v1alpha1.DisruptionRestart, false},
		"kubelet minor":                      {worker(), kubeletTo("v1.37.2", "v1.37.2"), v1alpha1.DisruptionDrain, false},
		"kubelet minor, drain waived":        {skip, kubeletTo("v1.37.2", "v1.37.2"), v1alpha1.DisruptionRestart, false},
		"runtime patch":                      {worker(), runtimeTo("1.7.29"), v1alpha1.DisruptionRestart, false},
		"runtime minor":                      {worker(), runtimeTo("1.8.0"), v1alpha1.DisruptionDrain, true},
		"runtime major":                      {skip, runtimeTo("2.4.2"), v1alpha1.DisruptionDrain, true},
		"control plane patch":                {controlPlane(), controlOnly, v1alpha1.DisruptionRestart, false},
		"control plane minor, kubelet later": {controlPlane(), controlMinor, v1alpha1.DisruptionDrain, false},
		"nothing":                            {worker(), kubeletTo("v1.36.3", "v1.36.4"), v1alpha1.DisruptionNone, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := workerFacts("v1.36.3", "1.7.28")
			if slices.Contains(tc.spec.Roles, v1alpha1.RoleControlPlane) {
				facts = controlPlaneFacts("v1.36.3", "1.7.28")
			}
			p := plan(t, PlanInput{
				Machine: "w1", Spec: tc.spec, Assignment: tc.assignment, Facts: facts,
				Candidates: candidatesOf([]string{"v1.36.4", "v1.37.2"}, []string{"1.7.29", "1.8.0", "2.4.2"}),
			})
			assert.Equal(t, tc.want, p.Disruption)
			stopped := false
			for _, s := range p.Steps {
				stopped = stopped || s.Kind == StepStopSandboxes
			}
			assert.Equal(t, tc.sandboxes, stopped)
		})
	}
}

func TestAWaivedDrainIsRecorded(t *testing.T) {
	spec := worker()
	spec.Drain = &v1alpha1.DrainSpec{SkipForMinor: true}
	p := plan(t, PlanInput{Machine: "w1", Spec: spec, Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
	assert.Contains(t, reasons(p.Findings), "DrainSkipped")
}

// The kubelet was stopped with the sandboxes, so it must be started though nothing of it changes.
func TestARuntimeMinorAloneStartsTheKubeletAgain(t *testing.T) {
	a := v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("2.4.2")}}}
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf(nil, []string{"2.4.2"})})
	assert.Equal(t, []string{
		"Preflight",
		"StopSandboxes kubelet.service",
		"InstallPackages containerd=2.4.2-1",
		"ReloadUnits", "RestartUnit containerd.service",
		"ReloadUnits", "RestartUnit kubelet.service",
		"Verify",
	}, outline(p))
}

// What is on disk is not what runs; a restart is all that is missing.
func TestAPendingRestartIsPlannedWithoutAnyPackage(t *testing.T) {
	f := workerFacts("v1.36.4", "1.7.29")
	f.Kubelet.Running, f.Runtime.Running = "v1.36.3", "v1.7.28"
	a := kubeletTo("v1.36.4", "v1.36.4")
	a.Target.ContainerRuntime = containerdAt("1.7.29")
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: f})
	assert.Equal(t, []string{
		"Preflight", "KubeadmUpgrade Other v1.36.4",
		"ReloadUnits", "RestartUnit containerd.service",
		"ReloadUnits", "RestartUnit kubelet.service", "Verify",
	}, outline(p))
	require.NotNil(t, p.Stage, "kubeadm's images are still to be there")
	assert.Empty(t, p.Stage.Packages)
}

func TestStagingKnowsWhichImagesKubeadmWillNeed(t *testing.T) {
	candidates := candidatesOf([]string{"v1.37.2"}, nil)
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidates})
	require.NotNil(t, p.Stage)
	require.NotNil(t, p.Stage.Kubeadm)
	assert.Equal(t, "v1.37.2", p.Stage.Kubeadm.Version)
	assert.Contains(t, outline(p), "KubeadmUpgrade Other v1.37.2")

	f := workerFacts("v1.36.3", "1.7.28")
	a := kubeletTo("v1.36.3", "v1.36.3")
	a.Target.ContainerRuntime = containerdAt("1.7.29")
	p = plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: f, Candidates: []Candidate{candidate("containerd", "1.7.29-1", debianURI)}})
	require.NotNil(t, p.Stage)
	assert.Nil(t, p.Stage.Kubeadm, "no kubeadm, no images")
}

// A revision that appears later is no reason to install anything.
func TestANewRevisionOfTheSameVersionChangesNothing(t *testing.T) {
	candidates := append(candidatesOf([]string{"v1.36.3"}, nil), candidate("kubelet", "1.36.3-2.1", debianURI))
	assert.True(t, new(plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.3", "v1.36.3"), Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidates})).Empty())
}

// A vendor's build of the wished version is the wished version.
func TestAVendorBuildOfTheTargetNeedsNoPlan(t *testing.T) {
	f := workerFacts("v1.30.4", "1.7.28")
	f.Kubelet.Running = "v1.30.4-0+abc"
	assert.True(t, new(plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.30.4", "v1.30.4"), Facts: f})).Empty())
}

// Kubeadm is of the target's minor, at least of its patch, and never of a later minor.
func TestKubeadmIsOfTheTargetsMinor(t *testing.T) {
	candidates := candidatesOf([]string{"v1.37.2", "v1.38.0"}, nil)
	for name, tc := range map[string]struct {
		kubeadm string
		install bool
	}{
		"an older minor is replaced":    {"1.36.3-1.1", true},
		"an older patch is replaced":    {"1.37.1-1.1", true},
		"the same is kept":              {"1.37.2-1.1", false},
		"a later patch will do":         {"1.37.4-1.1", false},
		"a later minor will not":        {"1.38.0-1.1", true},
		"another revision is no reason": {"1.37.2-2.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := controlPlaneFacts("v1.36.3", "1.7.28")
			for i := range f.Packages.Installed {
				if f.Packages.Installed[i].Name == "kubeadm" {
					f.Packages.Installed[i].Version = tc.kubeadm
				}
			}
			p := plan(t, PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: controlPlaneTo("v1.37.2"), Facts: f, Candidates: candidates})
			if tc.install {
				assert.Contains(t, outline(p), "InstallPackages kubeadm=1.37.2-1.1")
			} else {
				assert.NotContains(t, outline(p), "InstallPackages kubeadm=1.37.2-1.1")
			}
		})
	}
}

// Exactly what changes is freed, and what was held or is ours is held after.
func TestHoldsAreLiftedForWhatChangesAndComeBack(t *testing.T) {
	f := workerFacts("v1.36.3", "1.7.28")
	f.Packages.Holds = []string{"containerd", "kubelet", "vim"}
	a := kubeletTo("v1.36.4", "v1.36.4")
	a.Target.ContainerRuntime = containerdAt("1.7.29")
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: f, Candidates: candidatesOf([]string{"v1.36.4"}, []string{"1.7.29"})})
	assert.Equal(t, []string{
		"Preflight",
		"InstallPackages kubeadm=1.36.4-1.1", "HoldPackages kubeadm",
		"KubeadmUpgrade Other v1.36.4",
		"UnholdPackages containerd", "InstallPackages containerd=1.7.29-1", "HoldPackages containerd",
		"ReloadUnits", "RestartUnit containerd.service",
		"UnholdPackages kubelet", "InstallPackages kubelet=1.36.4-1.1 kubectl=1.36.4-1.1", "HoldPackages kubelet kubectl",
		"ReloadUnits", "RestartUnit kubelet.service",
		"Verify",
	}, outline(p))
}

// What a package depends on comes along only from a short list, and never against a hold.
func TestOnlyHelpersComeAlong(t *testing.T) {
	candidates := candidatesOf([]string{"v1.36.4"}, nil)
	for i := range candidates {
		if candidates[i].Name == "kubelet" {
			candidates[i].Depends = []string{"iptables (>= 1.4.21)", "kubernetes-cni (>= 1.2.0)", "mount | util-linux"}
		}
	}
	cni := candidate("kubernetes-cni", "1.4.0-1.1", debianURI)
	facts := workerFacts("v1.36.3", "1.7.28")
	facts.Packages.Installed = append(facts.Packages.Installed, InstalledPackage{Name: "kubernetes-cni", Version: "1.1.1-00"})
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.4", "v1.36.4"), Facts: facts, Candidates: append(candidates, cni)}

	assert.Contains(t, outline(plan(t, in)), "InstallPackages kubelet=1.36.4-1.1 kubectl=1.36.4-1.1 kubernetes-cni=1.4.0-1.1")

	t.Run("not when the installed one will do", func(t *testing.T) {
		fine := in
		fine.Facts.Packages.Installed = append(append([]InstalledPackage{}, workerFacts("v1.36.3", "1.7.28").Packages.Installed...), InstalledPackage{Name: "kubernetes-cni", Version: "1.2.0-2.1"})
		assert.Contains(t, outline(plan(t, fine)), "InstallPackages kubelet=1.36.4-1.1 kubectl=1.36.4-1.1")
	})
	t.Run("not against the owner's hold", func(t *testing.T) {
		held := in
		held.Facts.Packages.Holds = []string{"kubernetes-cni"}
		for manager, command := range map[string]string{"apt": "apt-mark unhold kubernetes-cni", "dnf": "dnf versionlock delete kubernetes-cni", "zypper": "zypper removelock kubernetes-cni"} {
			held.Facts.Packages.Manager = manager
			_, err := NewPlan(held)
			assert.Contains(t, requireBlocked(t, err, ReasonHeldByOwner).Message, "`"+command+"`")
		}
	})
	t.Run("not when nobody has it", func(t *testing.T) {
		absent := in
		absent.Candidates = candidates
		_, err := NewPlan(absent)
		assert.Contains(t, requireBlocked(t, err, ReasonDependencyUnsolvable).Message, "kubernetes-cni >= 1.2.0")
	})
}

func TestWhatCannotBeMadeRightIsRefusedWithAReason(t *testing.T) {
	broken := workerFacts("v1.36.3", "1.7.28")
	broken.Packages.Broken = []string{"containerd.io"}
	strange := workerFacts("v1.36.3", "1.7.28")
	strange.OS, strange.Packages.Manager = OSFacts{ID: "alpine", PrettyName: "Alpine Linux v3.22"}, ""
	unknown := workerFacts("v1.36.3", "1.7.28")
	unknown.Kubelet.Running = "27+"
	unpackaged := workerFacts("v1.36.3", "1.7.28")
	unpackaged.Packages.Installed = unpackaged.Packages.Installed[:1]
	noKubeadm := controlPlaneFacts("v1.36.3", "1.7.28")
	noKubeadm.Packages.Installed = append(noKubeadm.Packages.Installed[:2:2], noKubeadm.Packages.Installed[3:]...)
	otherNode := workerFacts("v1.36.3", "1.7.28")
	otherNode.Node.Name = "w2"
	deadRuntime := workerFacts("v1.36.3", "docker://Unknown")
	downRuntime := workerFacts("v1.36.3", "1.7.28")
	downRuntime.Runtime.Running, downRuntime.Runtime.Installed = "", "1.7.28"
	ahead := workerFacts("v1.30.4", "1.7.28")
	ahead.Packages.Installed[1].Version = "1.30.5-1.1" // by hand, and not restarted yet
	noSkew := kubeletTo("v1.37.2", "v1.37.2")
	noSkew.Skew = nil
	ranged := kubeletTo("v1.33.3", "v1.36.3")
	ranged.Skew.MaxAPIServer = "v1.37.2"
	runtimeTo := func(name v1alpha1.RuntimeName, version string) v1alpha1.Assignment {
		return v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: name, Version: v1alpha1.ReleaseVersion(version)}}}}
	}
	ancient := kubeletTo("v1.24.9", "v1.26.4")
	ancient.Skew.MaxAPIServer = "v1.27.6"
	noRole := controlPlaneTo("v1.37.2")
	noRole.KubeadmRole = ""
	for name, tc := range map[string]struct {
		spec       v1alpha1.MachineSpec
		facts      Facts
		assignment v1alpha1.Assignment
		reason     string
		terminal   bool
		says       string
	}{
		"a package database in pieces":                   {worker(), broken, kubeletTo("v1.37.2", "v1.37.2"), ReasonPackageDBBroken, false, "containerd.io"},
		"an unknown system":                              {worker(), strange, kubeletTo("v1.37.2", "v1.37.2"), ReasonUnsupportedOS, true, "Alpine"},
		"an unknown version":                             {worker(), unknown, kubeletTo("v1.37.2", "v1.37.2"), ReasonVersionUnknown, false, "27+"},
		"a kubelet that is no package":                   {worker(), unpackaged, kubeletTo("v1.37.2", "v1.37.2"), ReasonNotPackaged, true, "kubelet"},
		"no kubeadm on a control plane":                  {controlPlane(), noKubeadm, controlPlaneTo("v1.37.2"), ReasonKubeadmMissing, true, "kubeadm"},
		"another node's certificate":                     {worker(), otherNode, kubeletTo("v1.37.2", "v1.37.2"), ReasonNodeIdentityMismatch, true, "w2"},
		"a kubelet newer than the API server":            {worker(), workerFacts("v1.29.7", "1.7.28"), kubeletTo("v1.30.4", "v1.29.7"), ReasonSkewViolated, true, "v1.29.7"},
		"a kubelet too old for the newest API server":    {worker(), workerFacts("v1.33.1", "1.7.28"), ranged, ReasonSkewViolated, true, "4 minors"},
		"a kubelet before v1.25 may lag by two":          {worker(), workerFacts("v1.24.1", "1.7.28"), ancient, ReasonSkewViolated, true, "3 minors"},
		"an assignment that says nothing of API servers": {worker(), workerFacts("v1.36.3", "1.7.28"), noSkew, ReasonSkewUnknown, false, "API servers"},
		"a kubelet minor back":                           {worker(), workerFacts("v1.37.2", "1.7.28"), kubeletTo("v1.36.3", "v1.37.2"), ReasonDowngradeRefused, true, "set spec.versions.kubelet to v1.37.2 or newer"},
		"a kubelet that is ahead in its minor":           {worker(), ahead, kubeletTo("v1.30.4", "v1.30.4"), ReasonDowngradeRefused, true, "1.30.5"},
		"a control plane back":                           {controlPlane(), controlPlaneFacts("v1.37.2", "1.7.28"), controlPlaneTo("v1.36.3"), ReasonDowngradeRefused, true, "never goes back"},
		"two control-plane minors at once":               {controlPlane(), controlPlaneFacts("v1.28.9", "1.7.28"), controlPlaneTo("v1.30.1"), ReasonSkewViolated, true, "one minor at a time"},
		"a control plane without a kubeadm role":         {controlPlane(), controlPlaneFacts("v1.36.3", "1.7.28"), noRole, ReasonRoleMismatch, true, "kubeadmRole"},
		"a control plane where none is":                  {controlPlane(), workerFacts("v1.36.3", "1.7.28"), controlPlaneTo("v1.37.2"), ReasonRoleMismatch, true, "static pod"},
		"another runtime":                                {worker(), workerFacts("v1.36.3", "1.7.28"), runtimeTo(v1alpha1.RuntimeCRIO, "1.36.0"), ReasonRuntimeMismatch, true, "containerd"},
		"a runtime minor back":                           {worker(), workerFacts("v1.36.3", "2.4.2"), runtimeTo(v1alpha1.RuntimeContainerd, "1.7.28"), ReasonDowngradeRefused, true, "set spec.versions.containerRuntime.version to 2.4.2 or newer"},
		"a runtime of unknown version":                   {worker(), deadRuntime, runtimeTo(v1alpha1.RuntimeContainerd, "1.7.28"), ReasonVersionUnknown, false, "Unknown"},
		"a runtime that is down":                         {worker(), downRuntime, runtimeTo(v1alpha1.RuntimeContainerd, "1.7.28"), ReasonVersionUnknown, false, "does not answer"},
		"a runtime the kubelet no longer takes":          {worker(), workerFacts("v1.25.9", "1.5.18"), kubeletTo("v1.26.4", "v1.26.4"), ReasonRuntimeTooOld, true, "1.6.0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlan(PlanInput{Machine: "w1", Spec: tc.spec, Assignment: tc.assignment, Facts: tc.facts, Candidates: candidatesOf([]string{"v1.26.4", "v1.30.1", "v1.30.4", "v1.33.3", "v1.36.3", "v1.37.2"}, []string{"1.7.28", "2.4.2"})})
			blocked := requireBlocked(t, err, tc.reason)
			assert.Equal(t, tc.terminal, blocked.Terminal)
			assert.Contains(t, blocked.Message, tc.says)
		})
	}
}

func TestARecordedSetMayBeGoneBackTo(t *testing.T) {
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.3", "v1.37.2"), Facts: workerFacts("v1.37.2", "1.7.28"), Candidates: candidatesOf([]string{"v1.36.3"}, nil)}
	in.Record = []v1alpha1.Versions{wishKubelet("v1.36.2")}
	_, err := NewPlan(in)
	requireBlocked(t, err, ReasonDowngradeRefused)
	in.Record = append(in.Record, wishKubelet("v1.36.3"))
	p := plan(t, in)
	assert.Equal(t, v1alpha1.DisruptionDrain, p.Disruption)
	assert.Contains(t, outline(p), "SwitchSource https://pkgs.example/core:/stable:/v1.36/deb/")
}

// Drift: a runtime patch goes back to its pin, and says so.
func TestARuntimePatchGoesBackToItsPin(t *testing.T) {
	a := v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationRepair, Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("1.7.28")}}}
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: workerFacts("v1.36.3", "1.7.29"), Candidates: candidatesOf(nil, []string{"1.7.28"})})
	assert.Equal(t, v1alpha1.DisruptionRestart, p.Disruption)
	assert.Equal(t, []string{"PatchDowngrade"}, reasons(p.Findings))
}

func TestADeadKubeletCanBeRepaired(t *testing.T) {
	f := workerFacts("v1.36.3", "1.7.28")
	f.Kubelet.Running, f.Kubelet.Active = "", false
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.4", "v1.36.4"), Facts: f, Candidates: candidatesOf([]string{"v1.36.4"}, nil)})
	assert.Empty(t, p.Steps[0].Expect.Kubelet, "preflight does not look for what is not there")
	assert.Contains(t, outline(p), "InstallPackages kubelet=1.36.4-1.1 kubectl=1.36.4-1.1")
}

func TestTheHashCoversExactlyWhatIsDone(t *testing.T) {
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.4", "v1.36.4"), Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.36.4"}, nil)}
	hash := plan(t, in).Hash
	assert.Equal(t, hash, plan(t, in).Hash, "the same input gives the same plan")

	other := in
	other.Assignment.ID = "2-b"
	other.Facts.Packages.Lock = &LockFacts{PID: 1, Path: "/var/lib/dpkg/lock"}
	assert.Equal(t, hash, plan(t, other).Hash, "who asked and what was found is not part of it")

	rebuilt := in
	rebuilt.Candidates = candidatesOf([]string{"v1.36.4"}, nil)
	rebuilt.Candidates[0].SHA256 = "another"
	assert.NotEqual(t, hash, plan(t, rebuilt).Hash, "the digest of every file is")

	hooked := in
	hooked.Spec.Hooks = &v1alpha1.HooksSpec{PreApply: []v1alpha1.HookName{"raid-check"}, PostApply: []v1alpha1.HookName{"smoke"}}
	p := plan(t, hooked)
	assert.NotEqual(t, hash, p.Hash)
	assert.Equal(t, "raid-check", p.Steps[1].Hook)
	assert.Equal(t, "smoke", p.Steps[len(p.Steps)-1].Hook)
}

func TestFilesAreNamedByDigestAndFoundAtAnEscapedAddress(t *testing.T) {
	candidates := candidatesOf(nil, nil)
	c := candidate("containerd", "1.7.29+k1-1", "https://pkgs.example/debian/")
	c.Path, c.SHA256 = "pool/c/containerd_1.7.29+k1-1_amd64.deb", "abc"
	a := v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("1.7.29")}}}
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: append(candidates, c)})
	require.Len(t, p.Stage.Packages, 1)
	assert.Equal(t, "abc.deb", p.Stage.Packages[0].File)
	assert.Equal(t, "https://pkgs.example/debian/pool/c/containerd_1.7.29%2Bk1-1_amd64.deb", p.Stage.Packages[0].URI)
}

func TestAHostWithoutAClusterIsPlannedWithAWarning(t *testing.T) {
	a := kubeletTo("v1.36.4", "")
	a.Skew = nil
	p := plan(t, PlanInput{Spec: worker(), Assignment: a, Facts: workerFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.36.4"}, nil), Standalone: true})
	assert.Contains(t, reasons(p.Findings), ReasonSkewUnknown)
}

func TestWhatIsStatedOfAPIServersIsJudgedNextToTheHostsOwn(t *testing.T) {
	in := PlanInput{
		Spec: controlPlane(), Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: controlPlaneFacts("v1.36.3", "2.4.2"),
		Candidates: candidatesOf([]string{"v1.37.2"}, nil), Standalone: true,
	}
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, ReasonSkewViolated).Message, "v1.36.3")
	in.Spec, in.Facts = worker(), workerFacts("v1.36.3", "2.4.2")
	assert.NotContains(t, reasons(plan(t, in).Findings), FindingSkewUnknown, "it was stated")
}

func TestADeadKubeletOfTheRightVersionIsRestarted(t *testing.T) {
	f := workerFacts("v1.36.4", "1.7.28")
	f.Kubelet.Running, f.Kubelet.Active = "", false
	p := plan(t, PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.4", "v1.36.4"), Facts: f})
	assert.Equal(t, []string{"Preflight", "ReloadUnits", "RestartUnit kubelet.service", "Verify"}, outline(p))
}

// A package manager that the host's probes do not read is not the same as no package.
func TestAHostWhosePackagesAreNotReadIsNotCalledUnpackaged(t *testing.T) {
	f := workerFacts("v1.36.3", "1.7.28")
	f.OS = OSFacts{ID: "rocky", PrettyName: "Rocky Linux 9.4", Family: "dnf"}
	f.Packages = PackageFacts{Manager: "dnf"}
	f.Problems = []Problem{{Field: "packages", Message: "packages of dnf are not looked at yet"}}
	_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.4", "v1.36.4"), Facts: f})
	blocked := requireBlocked(t, err, ReasonUnsupportedOS)
	assert.Contains(t, blocked.Message, "Rocky Linux 9.4")
	assert.Contains(t, blocked.Message, "not looked at yet")
}

func TestAPathIsEscapedOnce(t *testing.T) {
	for path, want := range map[string]string{
		"./amd64/kubelet_1.37.2-1.1_amd64.deb":   "https://p.example/deb/amd64/kubelet_1.37.2-1.1_amd64.deb",
		"pool/d/docker-ce_5%3a19.03.9~3-0_x.deb": "https://p.example/deb/pool/d/docker-ce_5%253a19.03.9~3-0_x.deb",
		"pool/g/g++_12 a.deb":                    "https://p.example/deb/pool/g/g%2B%2B_12%20a.deb",
	} {
		assert.Equal(t, want, Candidate{Source: "https://p.example/deb/", Path: path}.URI())
	}
}

// An upgrade that was cut short: the API server is new, another component is not.
func TestAHalfUpgradedControlPlaneIsFinished(t *testing.T) {
	f := controlPlaneFacts("v1.37.2", "2.4.2")
	f.Control.Scheduler = "v1.36.3"
	p := plan(t, PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: controlPlaneTo("v1.37.2"), Facts: f})
	assert.Equal(t, []string{"Preflight", "SnapshotEtcd", "GuardEtcd", "MoveEtcdLeader", "KubeadmUpgrade First v1.37.2", "Verify"}, outline(p))
}

// The kubelet of a control plane that moved earlier: kubeadm has done its part then.
func TestTheKubeletsOwnWindowOnAControlPlaneNeedsNoKubeadm(t *testing.T) {
	f := controlPlaneFacts("v1.36.3", "2.4.2")
	f.Control = &ControlFacts{APIServer: "v1.37.2", ControllerManager: "v1.37.2", Scheduler: "v1.37.2"}
	a := kubeletTo("v1.37.2", "v1.37.2")
	a.KubeadmRole = ""
	p := plan(t, PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: f, Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
	for _, s := range p.Steps {
		assert.NotEqual(t, StepKubeadmUpgrade, s.Kind)
	}
	assert.Contains(t, outline(p), "InstallPackages kubelet=1.37.2-1.1 kubectl=1.37.2-1.1")
	assert.Equal(t, v1alpha1.DisruptionDrain, p.Disruption)
}

func TestASkippedDrainIsToldExactlyWhereItIsSkipped(t *testing.T) {
	spec := controlPlane()
	spec.Drain = &v1alpha1.DrainSpec{SkipForMinor: true}
	for name, tc := range map[string]struct {
		change     func(in *PlanInput)
		disruption v1alpha1.Disruption
		told       bool
	}{
		"control plane and kubelet":      {func(*PlanInput) {}, v1alpha1.DisruptionRestart, true},
		"the control plane alone":        {func(in *PlanInput) { in.Assignment.Target.Kubelet = "" }, v1alpha1.DisruptionRestart, true},
		"a patch of the control plane":   {func(in *PlanInput) { in.Facts = controlPlaneFacts("v1.37.1", "1.7.28") }, v1alpha1.DisruptionRestart, false},
		"a minor of the runtime with it": {func(in *PlanInput) { in.Assignment.Target.ContainerRuntime = containerdAt("2.1.4") }, v1alpha1.DisruptionDrain, false},
		"a minor that is half done": {func(in *PlanInput) {
			in.Assignment.Target.Kubelet = ""
			in.Facts.Control.APIServer = "v1.37.2"
		}, v1alpha1.DisruptionRestart, true},
		"a minor that is half done, drained": {func(in *PlanInput) {
			in.Assignment.Target.Kubelet, in.Facts.Control.APIServer, in.Spec.Drain = "", "v1.37.2", nil
		}, v1alpha1.DisruptionDrain, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := PlanInput{
				Machine: "w1", Spec: spec, Assignment: controlPlaneTo("v1.37.2"), Facts: controlPlaneFacts("v1.36.3", "1.7.28"),
				Candidates: candidatesOf([]string{"v1.37.2"}, []string{"2.1.4"}),
			}
			tc.change(&in)
			p := plan(t, in)
			assert.Equal(t, tc.disruption, p.Disruption)
			assert.Equal(t, tc.told, slices.Contains(reasons(p.Findings), FindingDrainSkipped), "%v", p.Findings)
		})
	}
}

// What the spec never said is not the spec's fault.
func TestAKubeletThatCatchesUpOnTheWaySaysWhatForWhenItsReleaseIsNowhere(t *testing.T) {
	in := kubeletHop("v1.33.4", "v1.36.3")
	in.Candidates, in.Spec.Versions = candidatesOf([]string{"v1.37.2"}, nil), &v1alpha1.Versions{Kubelet: "v1.37.2"}
	_, err := NewPlan(in)
	message := requireBlocked(t, err, ReasonVersionNotFound).Message
	assert.Contains(t, message, "for the API servers, which cannot go on before this kubelet has caught up with them at v1.36.3")
	assert.NotContains(t, message, "for spec.versions.kubelet:")
	in.Spec.Versions.Kubelet = "v1.36.3"
	_, err = NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, ReasonVersionNotFound).Message, "for spec.versions.kubelet:")
}
