package upgrade

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// stoppedFacts are those of a worker whose runtime has no process: no probe of it was answered.
func stoppedFacts(kubernetes, containerd string) Facts {
	f := workerFacts(kubernetes, containerd)
	f.Runtime.Running, f.Runtime.Stopped, f.Runtime.Ready = "", true, false
	f.Problems = []Problem{{Field: "containerRuntime.running", Message: "connection refused"}, {Field: "containerRuntime.ready", Message: "connection refused"}}
	return f
}

func runtimeOnly(version string) v1alpha1.Assignment {
	return v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(version)}}}
}

func TestARuntimeThatIsDownCanBeRepaired(t *testing.T) {
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: runtimeOnly("1.7.29"), Facts: stoppedFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf(nil, []string{"1.7.29"})}
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "InstallPackages containerd=1.7.29-1", "ReloadUnits", "RestartUnit containerd.service", "Verify"}, outline(p))
	assert.Equal(t, v1alpha1.DisruptionRestart, p.Disruption)
	assert.Empty(t, p.Steps[0].Expect.Runtime, "preflight does not look for what is not there")
	assert.Equal(t, "1.7.29", p.Steps[len(p.Steps)-1].Expect.Runtime)

	t.Run("with its kubelet, in one window", func(t *testing.T) {
		in := in
		in.Assignment = kubeletTo("v1.36.4", "v1.36.4")
		in.Assignment.Target.ContainerRuntime = containerdAt("1.7.29")
		in.Candidates = candidatesOf([]string{"v1.36.4"}, []string{"1.7.29"})
		in.Facts.Kubelet = &ComponentFacts{Installed: "v1.36.3", Unit: "kubelet.service"}
		assert.Subset(t, outline(plan(t, in)), []string{"RestartUnit containerd.service", "RestartUnit kubelet.service"})
	})
	t.Run("at its wish a host without a cluster restarts it", func(t *testing.T) {
		in := in
		in.Assignment = runtimeOnly("1.7.28")
		assert.Equal(t, []string{"Preflight", "ReloadUnits", "RestartUnit containerd.service", "Verify"}, outline(plan(t, in)))
	})
}

func TestAKubeletThatIsDownDoesNotHoldUpItsRuntime(t *testing.T) {
	down := workerFacts("v1.36.3", "1.7.28")
	down.Kubelet = &ComponentFacts{Installed: "v1.36.3", Unit: "kubelet.service"}
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: runtimeOnly("2.1.4"), Facts: down, Candidates: candidatesOf(nil, []string{"2.1.4"})}
	in.Assignment.Skew = &v1alpha1.Skew{MinAPIServer: "v1.36.3"}
	p := plan(t, in)
	last := p.Steps[len(p.Steps)-2]
	assert.Equal(t, Step{Kind: StepRestartUnit, Unit: "kubelet.service", Down: true}, last)
	assert.Equal(t, "RestartUnit: kubelet.service, which did not run before; it may stay down", last.Describe())
	assert.Empty(t, p.Steps[len(p.Steps)-1].Expect.Kubelet)
	at := slices.IndexFunc(p.Findings, func(f Finding) bool { return f.Reason == FindingKubeletDown })
	require.GreaterOrEqual(t, at, 0)
	assert.Contains(t, p.Findings[at].Message, "whether it comes up or not")

	t.Run("one that runs is insisted on", func(t *testing.T) {
		in := in
		in.Facts = workerFacts("v1.36.3", "1.7.28")
		p := plan(t, in)
		assert.Equal(t, Step{Kind: StepRestartUnit, Unit: "kubelet.service"}, p.Steps[len(p.Steps)-2])
	})
	t.Run("and so is one that the plan brings", func(t *testing.T) {
		in := in
		in.Assignment = kubeletTo("v1.36.4", "v1.36.4")
		in.Assignment.Target.ContainerRuntime = containerdAt("2.1.4")
		in.Candidates = candidatesOf([]string{"v1.36.4"}, []string{"2.1.4"})
		p := plan(t, in)
		assert.Equal(t, Step{Kind: StepRestartUnit, Unit: "kubelet.service"}, p.Steps[len(p.Steps)-2])
	})
}

func TestWhatARuntimeThatIsDownKeepsBack(t *testing.T) {
	deaf := stoppedFacts("v1.36.3", "1.7.28")
	deaf.Runtime.Stopped = false
	control := stoppedFacts("v1.36.3", "1.7.28")
	control.Control = controlPlaneFacts("v1.36.3", "1.7.28").Control
	both := controlPlaneTo("v1.37.2")
	both.Target.ContainerRuntime = containerdAt("1.7.29")
	deadKubelet := controlPlaneFacts("v1.36.3", "1.7.28")
	deadKubelet.Kubelet.Running, deadKubelet.Kubelet.Active = "", false
	for name, tc := range map[string]struct {
		spec       v1alpha1.MachineSpec
		assignment v1alpha1.Assignment
		facts      Facts
		reason     string
		says       string
	}{
		"another minor, whose daemon could not take over what runs": {worker(), runtimeOnly("2.1.4"), stoppedFacts("v1.36.3", "1.7.28"), ReasonRuntimeStopped, "another release of v1.7"},
		"a kubelet":                               {worker(), kubeletTo("v1.36.4", "v1.36.4"), stoppedFacts("v1.36.3", "1.7.28"), ReasonRuntimeStopped, "systemctl status containerd.service"},
		"a control plane":                         {controlPlane(), controlPlaneTo("v1.37.2"), control, ReasonRuntimeStopped, "nor a control plane"},
		"a control plane, the repair beside it":   {controlPlane(), both, control, ReasonRuntimeStopped, "repair it first"},
		"one that does not answer, and may run":   {worker(), runtimeOnly("1.7.29"), deaf, ReasonVersionUnknown, "does not answer"},
		"a control plane under a kubelet that is": {controlPlane(), controlPlaneTo("v1.37.2"), deadKubelet, ReasonVersionUnknown, "no control plane goes to v1.37.2 without it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlan(PlanInput{Machine: "w1", Spec: tc.spec, Assignment: tc.assignment, Facts: tc.facts, Candidates: candidatesOf([]string{"v1.36.4", "v1.37.2"}, []string{"1.7.29", "2.1.4"})})
			blocked := requireBlocked(t, err, tc.reason)
			assert.False(t, blocked.Terminal)
			assert.Contains(t, blocked.Message, tc.says)
		})
	}
}

// stopped is a host that reports a runtime that is down.
func stopped(name, kubelet, api, installed string, wish v1alpha1.Versions) HostState {
	h := at(name, kubelet, api, wish)
	h.Versions.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: "containerd", Version: v1alpha1.Unknown, Installed: installed}
	return h
}

func withRuntime(v v1alpha1.Versions, version string) v1alpha1.Versions {
	v.ContainerRuntime = containerdAt(version)
	return v
}

func TestAMachineThatIsDownIsRepairedBeforeAnythingElse(t *testing.T) {
	there := at("cp0", "v1.37.2", "v1.37.2", wishBoth("v1.37.2"))
	dead := func(h HostState, last string) HostState {
		h.Versions.Kubelet, h.LastKubelet = v1alpha1.Unknown, last
		return h
	}
	running := func(h HostState, version string) HostState {
		h.Versions.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: "containerd", Version: version}
		return h
	}
	alone := v1alpha1.Versions{ContainerRuntime: containerdAt("1.7.29")}
	for name, tc := range map[string]struct {
		host   HostState
		target v1alpha1.Versions
		reason string
		says   string
	}{
		"the runtime is down, and another patch is wished":              {stopped("w", "v1.36.3", "", "1.7.28", withRuntime(wishKubelet("v1.37.2"), "1.7.29")), alone, "", ""},
		"likewise on a control plane that is to move":                   {stopped("w", "v1.36.3", "v1.36.3", "1.7.28", withRuntime(wishBoth("v1.37.2"), "1.7.29")), alone, "", ""},
		"likewise under a kubelet that is down with it":                 {dead(stopped("w", "", "", "1.7.28", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), "v1.36.3"), alone, "", ""},
		"the runtime is down at its wish":                               {stopped("w", "v1.36.3", "", "1.7.29", withRuntime(wishKubelet("v1.37.2"), "1.7.29")), v1alpha1.Versions{}, ReasonRuntimeStopped, "systemctl status containerd.service"},
		"the runtime is down, and another minor is wished":              {stopped("w", "v1.36.3", "", "1.6.30", withRuntime(wishKubelet("v1.37.2"), "1.7.29")), v1alpha1.Versions{}, ReasonRuntimeStopped, "another release of v1.6"},
		"the runtime does not answer, and nobody knows what it is":      {stopped("w", "v1.36.3", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), v1alpha1.Versions{}, ReasonVersionUnknown, "nothing is planned on a guess"},
		"what is installed of it is no version":                         {stopped("w", "v1.36.3", "", "dev", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), v1alpha1.Versions{}, ReasonVersionUnknown, "nothing is planned on a guess"},
		"the kubelet is down at its wish, and the runtime is to move":   {running(dead(at("w", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), "v1.36.3"), "1.7.28"), alone, "", ""},
		"likewise across a minor of the runtime":                        {running(dead(at("w", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), "v1.36.3"), "1.6.30"), alone, "", ""},
		"likewise before its control plane":                             {running(dead(at("w", "", "v1.36.3", withRuntime(wishBoth("v1.37.2"), "1.7.29")), "v1.36.3"), "1.7.28"), alone, "", ""},
		"the kubelet is down at its wish, and so is the runtime":        {running(dead(at("w", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), "v1.36.3"), "1.7.29"), v1alpha1.Versions{}, ReasonVersionUnknown, "see why it does not run"},
		"the kubelet is down at its wish, and the runtime is not known": {running(dead(at("w", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), "v1.36.3"), "dev"), v1alpha1.Versions{}, ReasonVersionUnknown, "the container runtime of w"},
		"the kubelet is down and nothing is known of it":                {running(dead(at("w", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29")), ""), "1.7.28"), v1alpha1.Versions{}, ReasonVersionUnknown, "the kubelet of w"},
	} {
		t.Run(name, func(t *testing.T) {
			target, role, _, blocked := NextTarget(Fleet{Hosts: []HostState{there, tc.host}}, tc.host, tc.host.Wish)
			assert.Equal(t, tc.target, target.Versions)
			assert.Empty(t, role)
			if tc.reason == "" {
				require.Nil(t, blocked)
				return
			}
			assert.Contains(t, requireBlocked(t, blocked, tc.reason).Message, tc.says)
		})
	}
	t.Run("then it goes on", func(t *testing.T) {
		h := stopped("w", "v1.36.3", "", "1.7.28", withRuntime(wishKubelet("v1.37.2"), "1.7.29"))
		hops, blocked := Hops(Fleet{Hosts: []HostState{there, h}})
		assert.Empty(t, blocked)
		require.Len(t, hops, 2)
		assert.EqualValues(t, "v1.37.2", hops[1].Target.Kubelet)
	})
	t.Run("packages go on beside a kubelet that is down at its wish", func(t *testing.T) {
		h := dead(at("w", "", "", wishKubelet("v1.36.3")), "v1.36.3")
		h.OSPending = true
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{there, h}}, h, h.Wish)
		require.Nil(t, blocked)
		assert.True(t, target.OS)
	})
}

func TestOnlyAStoppedRuntimeIsReportedWithWhatIsInstalled(t *testing.T) {
	f := stoppedFacts("v1.36.3", "1.7.28")
	assert.Equal(t, &v1alpha1.ObservedRuntime{Name: "containerd", Version: v1alpha1.Unknown, Installed: "1.7.28"}, f.Versions().ContainerRuntime)
	f.Runtime.Stopped = false
	assert.Empty(t, f.Versions().ContainerRuntime.Installed)
	f = workerFacts("v1.36.3", "1.7.28")
	assert.Empty(t, f.Versions().ContainerRuntime.Installed)
}

// A daemon in the middle of its transaction does not answer because of that.
func TestAHalfInstalledPackageIsNamedBeforeWhatItHasStopped(t *testing.T) {
	half := func(f Facts, name string) Facts {
		for i := range f.Packages.Installed {
			if f.Packages.Installed[i].Name == name {
				f.Packages.Installed[i].State = "half-configured"
			}
		}
		return f
	}
	silent := workerFacts("v1.36.3", "1.7.28")
	silent.Kubelet.Running, silent.Kubelet.Active, silent.Kubelet.Installed = "", false, ""
	gone := workerFacts("v1.36.3", "1.7.28")
	gone.Runtime = nil
	deaf := workerFacts("v1.36.3", "1.7.28")
	deaf.Runtime.Running = ""
	noKubelet := workerFacts("v1.36.3", "1.7.28")
	noKubelet.Kubelet = nil
	for name, tc := range map[string]struct {
		assignment v1alpha1.Assignment
		facts      Facts
		says       string
	}{
		"a kubelet that does not run":        {kubeletTo("v1.36.4", "v1.36.4"), half(silent, "kubelet"), "the version of the kubelet"},
		"a kubelet that is not there":        {kubeletTo("v1.36.4", "v1.36.4"), half(noKubelet, "kubelet"), "no kubelet was found"},
		"a runtime that is not there":        {runtimeOnly("1.7.29"), half(gone, "containerd"), "no container runtime answers"},
		"a runtime that does not answer":     {runtimeOnly("1.7.29"), half(deaf, "containerd"), "containerd does not answer"},
		"a runtime that is down":             {runtimeOnly("2.1.4"), half(stoppedFacts("v1.36.3", "1.7.28"), "containerd"), "containerd of this host does not run"},
		"a kubelet under a runtime likewise": {kubeletTo("v1.36.4", "v1.36.4"), half(stoppedFacts("v1.36.3", "1.7.28"), "containerd"), "containerd does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: tc.assignment, Facts: tc.facts, Candidates: candidatesOf([]string{"v1.36.4"}, []string{"1.7.29"})})
			blocked := requireBlocked(t, err, ReasonPackageDBBroken)
			assert.False(t, blocked.Terminal)
			assert.Regexp(t, "^packages are half installed.*"+tc.says, blocked.Message)
		})
	}
	t.Run("also where only the Machine reports it", func(t *testing.T) {
		h := stopped("w", "v1.36.3", "", "", withRuntime(wishKubelet("v1.36.3"), "1.7.29"))
		h.PackagesBroken = HalfInstalledMessage([]string{"containerd"})
		_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{h}}, h, h.Wish)
		assert.Regexp(t, "^packages are half installed on this host: containerd;.*reports version", requireBlocked(t, blocked, ReasonPackageDBBroken).Message)
	})
	t.Run("and nothing else is put down to it", func(t *testing.T) {
		f := half(workerFacts("v1.36.3", "1.7.28"), "kubectl")
		_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.1", "v1.36.4"), Facts: f})
		requireBlocked(t, err, ReasonDowngradeRefused)
	})
}
