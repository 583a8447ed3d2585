package upgrade

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// runtimeMove moves containerd alone, beside API servers of one version.
func runtimeMove(kubelet, from, to, api string) PlanInput {
	return PlanInput{
		Machine: "w1", Spec: worker(), Facts: workerFacts(kubelet, from), Candidates: candidatesOf(nil, []string{to}),
		Assignment: v1alpha1.Assignment{
			ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(to)}},
			Skew: &v1alpha1.Skew{MinAPIServer: api, MaxAPIServer: api},
		},
	}
}

// rebootOnly reboots a host that asks for it.
func rebootOnly(kubelet, runtime, api string) PlanInput {
	in := runtimeMove(kubelet, runtime, runtime, api)
	in.Assignment.Target = v1alpha1.Target{OS: true}
	in.Spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
	in.Facts.Reboot.Required = true
	return in
}

func withPackage(in PlanInput, name, version string) PlanInput {
	in.Facts.Packages.Installed = slices.Clone(in.Facts.Packages.Installed)
	for i := range in.Facts.Packages.Installed {
		if in.Facts.Packages.Installed[i].Name == name {
			in.Facts.Packages.Installed[i].Version = version
		}
	}
	return in
}

func wishing(in PlanInput, kubelet, containerd string) PlanInput {
	in.Spec.Versions = &v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(kubelet)}
	if containerd != "" {
		in.Spec.Versions.ContainerRuntime = containerdAt(containerd)
	}
	return in
}

// brought is a package that has put its program on the disk.
func brought(in PlanInput, name, upstream string) PlanInput {
	if name == "kubelet" {
		in.Facts.Kubelet.Installed = "v" + upstream
	} else {
		in.Facts.Runtime.Installed = upstream
	}
	return withPackage(in, name, upstream+"-1")
}

func program(in PlanInput, kubelet string) PlanInput {
	in.Facts.Kubelet.Installed = kubelet
	return in
}

func dead(in PlanInput) PlanInput {
	in.Facts.Kubelet.Running, in.Facts.Kubelet.Active = "", false
	return in
}

// Restarts and reboots run what is on the disk, whoever has put it there.
func TestNothingIsStartedThatNobodyAskedFor(t *testing.T) {
	runtime := func() PlanInput { return runtimeMove("v1.36.3", "1.7.28", "2.0.1", "v1.36.3") }
	reboot := func() PlanInput { return rebootOnly("v1.36.3", "1.7.28", "v1.36.3") }
	control := func(api string) PlanInput { // of several, whose kubelets follow later
		in := controlPlaneHop("v1.36.3", "v1.37.2")
		in.Assignment.Target.Kubelet, in.Assignment.Skew.MinAPIServer = "", api
		return withPackage(in, "kubelet", "1.37.2-1.1")
	}
	noSkew := withPackage(runtime(), "kubelet", "1.37.2-1.1")
	noSkew.Assignment.Skew = nil
	for name, tc := range map[string]struct {
		in     PlanInput
		reason string
		says   []string
		starts string // the kubelet that is expected in the end
	}{
		"a runtime minor on a host where nothing else is new":          {runtime(), "", nil, "v1.36.3"},
		"a runtime minor beside a kubelet's package that is new":       {withPackage(runtime(), "kubelet", "1.37.2-1.1"), ReasonSkewViolated, []string{"package kubelet 1.37.2-1.1", "bring package kubelet to v1.36.3", "control plane to v1.37", "the restart"}, ""},
		"a runtime minor beside a kubelet program that is new":         {program(runtime(), "v1.37.2"), ReasonSkewViolated, []string{"kubelet v1.37.2 is on disk"}, ""},
		"a reboot into a kubelet that is too new":                      {withPackage(reboot(), "kubelet", "1.37.2-1.1"), ReasonSkewViolated, []string{"the reboot"}, ""},
		"a reboot into a kubelet that is too old":                      {program(reboot(), "v1.32.9"), ReasonSkewViolated, []string{"4 minors behind", "bring package kubelet to v1.36.3"}, ""},
		"a reboot of a dead kubelet that is too new":                   {dead(program(reboot(), "v1.37.2")), ReasonSkewViolated, []string{"does not run", "bring package kubelet to v1.36.3"}, ""},
		"a reboot of a dead kubelet that is as it was":                 {dead(reboot()), "", nil, ""},
		"a kubelet that skew allows, of another minor":                 {withPackage(rebootOnly("v1.36.3", "1.7.28", "v1.37.2"), "kubelet", "1.37.2-1.1"), ReasonRestartPending, []string{"set spec.versions.kubelet to v1.37.2"}, ""},
		"a patch that spec says nothing against":                       {brought(reboot(), "kubelet", "1.36.4"), "", nil, "v1.36.4"},
		"a patch that spec does not want":                              {wishing(withPackage(reboot(), "kubelet", "1.36.4-1.1"), "v1.36.3", ""), ReasonRestartPending, []string{"bring the package back to 1.36.3"}, ""},
		"kubeadm's package, which may start a kubelet that is too new": {control("v1.36.3"), ReasonSkewViolated, []string{"the package kubeadm of this plan would start it"}, ""},
		"kubeadm's package beside a kubelet that skew allows":          {control("v1.37.2"), "", nil, "v1.36.3"},
		"a new kubelet where API servers are not known":                {noSkew, ReasonSkewUnknown, nil, ""},
		"a runtime patch, which leaves the kubelet alone":              {withPackage(runtimeMove("v1.36.3", "1.7.28", "1.7.29", "v1.36.3"), "kubelet", "1.37.2-1.1"), "", nil, "v1.36.3"},
		"a reboot into a runtime of another minor":                     {withPackage(reboot(), "containerd", "2.0.1-1"), ReasonRestartPending, []string{"containerd of this host runs v1.7.28", "package containerd 2.0.1-1", "set spec.versions.containerRuntime.version to"}, ""},
		"a reboot into a runtime patch that spec does not want":        {wishing(withPackage(reboot(), "containerd", "1.7.29-1"), "", "1.7.28"), ReasonRestartPending, []string{"back to 1.7.28"}, ""},
		"a reboot into a runtime patch spec says nothing against":      {brought(reboot(), "containerd", "1.7.29"), "", nil, "v1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPlan(tc.in)
			if tc.reason != "" {
				blocked := requireBlocked(t, err, tc.reason)
				assert.False(t, blocked.Terminal, "the host can be mended without another spec")
				for _, part := range tc.says {
					assert.Contains(t, blocked.Message, part)
				}
				return
			}
			require.NoError(t, err)
			require.NotEmpty(t, p.Steps)
			verify := p.Steps[len(p.Steps)-1]
			assert.Equal(t, tc.starts, verify.Expect.Kubelet)
			assert.Empty(t, p.StartsOther(tc.in.Facts), "the host is as it was planned for")
		})
	}
	t.Run("what is expected of a patch is told", func(t *testing.T) {
		p := plan(t, brought(reboot(), "containerd", "1.7.29"))
		assert.Contains(t, reasons(p.Findings), FindingRestartPending)
		assert.Equal(t, "1.7.29", p.Steps[len(p.Steps)-1].Expect.Runtime)
	})
}

// Between plan and grant somebody else may bring a package: the plan would start it.
func TestAPlanKnowsWhatItWouldStartInstead(t *testing.T) {
	move := func() PlanInput { return runtimeMove("v1.36.3", "1.7.28", "2.0.1", "v1.36.3") }
	p := plan(t, move())
	assert.Contains(t, p.StartsOther(brought(move(), "kubelet", "1.37.2").Facts), "kubelet v1.37.2 is on disk")
	assert.Empty(t, p.StartsOther(brought(move(), "containerd", "1.7.29").Facts), "which the plan brings itself")
	patch := plan(t, runtimeMove("v1.36.3", "1.7.28", "1.7.29", "v1.36.3"))
	assert.Empty(t, patch.StartsOther(brought(move(), "kubelet", "1.37.2").Facts), "whose kubelet is not restarted")
	reboots := plan(t, rebootOnly("v1.36.3", "1.7.28", "v1.36.3"))
	assert.Contains(t, reboots.StartsOther(brought(move(), "containerd", "2.0.1").Facts), "containerd 2.0.1")
}

// Whatever is on the disk and whatever is wished: what runs in the end is within skew.
func TestNoPlanStartsAKubeletThatSkewForbids(t *testing.T) {
	planned, refused := 0, 0
	for _, oldest := range []int{35, 36} {
		for ahead := 0; ahead <= 1; ahead++ {
			for running := oldest - 3 + ahead; running <= oldest; running++ {
				for disk := oldest - 5; disk <= oldest+2; disk++ {
					for kind := range 8 {
						in := rebootOnly(release(running), "1.7.28", release(oldest))
						if kind%4 == 1 {
							in = runtimeMove(release(running), "1.7.28", "2.4.2", release(oldest))
						}
						if kind%4 == 2 {
							in.Assignment.Target.Kubelet = v1alpha1.KubernetesVersion(release(oldest))
							in.Candidates = candidatesOf([]string{release(oldest)}, nil)
						}
						if kind%4 == 3 {
							in = controlPlaneHop(release(oldest), release(oldest+ahead))
							in.Facts = controlPlaneFacts(release(running), "2.4.2")
							in.Facts.Control.APIServer, in.Assignment.Target.Kubelet = release(oldest), ""
							in.Facts.Control.Scheduler = release(oldest - 1) // so that there is work in any case
							in.Assignment.Skew.MinAPIServer = release(oldest)
						}
						in.Assignment.Skew.MaxAPIServer = release(oldest + ahead)
						if kind < 4 {
							in = program(in, release(disk))
						} else {
							in = withPackage(in, "kubelet", fmt.Sprintf("1.%d.3-1.1", disk))
						}
						p, err := NewPlan(in)
						if err != nil {
							refused++
							continue
						}
						planned++
						for _, v := range startedKubelets(in.Facts, p) {
							minor := minorOf(t, v)
							assert.LessOrEqual(t, minor, oldest, "API servers %d to %d, kubelet %d runs, %d on disk, kind %d", oldest, oldest+ahead, running, disk, kind)
							assert.LessOrEqual(t, oldest+ahead-minor, 3, "API servers %d to %d, kubelet %d runs, %d on disk, kind %d", oldest, oldest+ahead, running, disk, kind)
						}
					}
				}
			}
		}
	}
	assert.Greater(t, planned, 30)
	assert.Greater(t, refused, 100)
}

// startedKubelets are those that may run after a plan: what it brings, else all that is on disk.
func startedKubelets(f Facts, p Plan) []string {
	var brought, found []string
	started := false
	for _, s := range p.Steps {
		started = started || s.Kind == StepReboot || s.Kind == StepRestartUnit && s.Unit == "kubelet.service"
		for _, c := range s.Packages {
			started = started || s.Kind == StepInstallPackages && c.Name == "kubeadm" // whose package may do so
			if s.Kind == StepInstallPackages && c.Name == "kubelet" {
				brought = append(brought, packageUpstream(c.To).String())
			}
		}
	}
	if !started || brought != nil {
		return brought
	}
	for _, pkg := range f.Packages.Installed {
		if pkg.Name == "kubelet" {
			found = append(found, packageUpstream(pkg.Version).String())
		}
	}
	return append(found, f.Kubelet.Installed)
}

// A host without a cluster knows one API server: its own.
func TestAHostOnItsOwnTakesNoKubeletPastItsOwnAPIServer(t *testing.T) {
	alone := func(edit func(*Facts)) error {
		in := controlPlaneHop("v1.36.3", "v1.37.2")
		in.Standalone, in.Assignment.Skew, in.Assignment.Target.ControlPlane = true, nil, ""
		edit(&in.Facts)
		_, err := NewPlan(in)
		return err
	}
	requireBlocked(t, alone(func(*Facts) {}), ReasonSkewViolated)
	silent := alone(func(f *Facts) {
		f.Control.APIServer, f.Control.Manifests = "", map[string]string{"kube-apiserver": "v1.36.3"}
	})
	assert.False(t, requireBlocked(t, silent, ReasonVersionUnknown).Terminal)
	require.NoError(t, alone(func(f *Facts) { f.Control.APIServer = "v1.37.2" }))
	in := controlPlaneHop("v1.36.3", "v1.37.2")
	in.Standalone, in.Assignment.Skew = true, nil
	p := plan(t, in)
	assert.Contains(t, reasons(p.Findings), FindingSkewUnknown, "of the others nothing is known")
}
