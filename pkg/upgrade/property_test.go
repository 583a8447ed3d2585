package upgrade

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// run carries a plan out on facts, as an executor that never fails would.
func run(t *testing.T, f Facts, p Plan) Facts {
	t.Helper()
	installed := map[string]string{}
	for _, pkg := range f.Packages.Installed {
		installed[pkg.Name] = pkg.Version
	}
	holds := slices.Clone(f.Packages.Holds)
	kubelet, runtime := *f.Kubelet, *f.Runtime
	for _, s := range p.Steps {
		switch s.Kind {
		case StepInstallPackages:
			for _, c := range s.Packages {
				require.Equal(t, installed[c.Name], c.From, "%s is where the plan thinks it is", c.Name)
				require.NotContains(t, holds, c.Name, "a package on hold is not moved")
				installed[c.Name] = c.To
			}
		case StepHoldPackages, StepUnholdPackages:
			for _, c := range s.Packages {
				holds = slices.DeleteFunc(holds, func(h string) bool { return h == c.Name })
				if s.Kind == StepHoldPackages {
					holds = append(holds, c.Name)
				}
			}
		case StepSwitchSource:
			f.Packages.Sources = slices.Clone(f.Packages.Sources)
			for i := range f.Packages.Sources {
				if f.Packages.Sources[i].URI == s.Source.From {
					f.Packages.Sources[i].URI = s.Source.To
				}
			}
		case StepStopSandboxes:
			kubelet.Active = false
		case StepRestartUnit:
			switch s.Unit {
			case "kubelet.service":
				kubelet.Running, kubelet.Active = packageUpstream(installed["kubelet"]).String(), true
			case "containerd.service":
				runtime.Running = packageUpstream(installed["containerd"]).String()
			}
		case StepKubeadmUpgrade:
			target, _ := ParseKubernetes(s.Kubeadm.Version)
			kubeadm := packageUpstream(installed["kubeadm"])
			require.True(t, kubeadm.SameMinor(target) && !kubeadm.LessThan(target), "kubeadm %s installs %s", kubeadm, target)
			if s.Kubeadm.ControlPlane {
				f.Control = &ControlFacts{APIServer: s.Kubeadm.Version, ControllerManager: s.Kubeadm.Version, Scheduler: s.Kubeadm.Version}
			}
		}
	}
	f.Packages.Installed = nil
	for _, name := range slices.Sorted(mapKeys(installed)) {
		f.Packages.Installed = append(f.Packages.Installed, InstalledPackage{Name: name, Version: installed[name]})
	}
	f.Packages.Holds, f.Kubelet, f.Runtime = holds, &kubelet, &runtime
	require.True(t, kubelet.Active, "no plan leaves the kubelet stopped")
	return f
}

func mapKeys(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Whatever is asked of whatever host: the plan is the same twice, and leads to exactly what was
// asked, after which nothing is left to do; or it is refused with a reason and a message.
func TestAPlanLeadsToItsTargetOrIsRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	kubernetes := []string{"v1.35.4", "v1.36.2", "v1.36.3", "v1.37.1", "v1.37.2"}
	containerd := []string{"1.7.27", "1.7.28", "2.0.1", "2.4.2"}
	candidates := candidatesOf(kubernetes, containerd)
	planned, refused := 0, 0
	for i := range 3000 {
		in := randomInput(r, kubernetes, containerd, candidates)
		first, err := NewPlan(in)
		second, again := NewPlan(in)
		require.Equal(t, first, second, "case %d", i)
		require.Equal(t, err, again)
		if err != nil {
			requireBlocked(t, err, err.(*Blocked).Reason) //nolint:errorlint // the type is what is asserted
			refused++
			continue
		}
		planned++
		after := run(t, in.Facts, first)
		want := in.Assignment.Target
		if want.Kubelet != "" {
			assert.True(t, SameKubernetes(after.Kubelet.Running, string(want.Kubelet)), "case %d: %+v", i, outline(first))
		}
		if want.ControlPlane != "" {
			assert.True(t, SameKubernetes(after.Control.APIServer, string(want.ControlPlane)), "case %d", i)
		}
		if c := want.ContainerRuntime; c != nil {
			assert.True(t, SameRuntime(after.Runtime.Running, string(c.Version)), "case %d", i)
		}
		for _, held := range in.Facts.Packages.Holds {
			assert.Contains(t, after.Packages.Holds, held, "case %d: what was held is held", i)
		}
		in.Facts = after
		rest, err := NewPlan(in)
		require.NoError(t, err, "case %d", i)
		assert.True(t, rest.Empty(), "case %d: %v is left", i, outline(rest))
	}
	assert.Greater(t, planned, 500)
	assert.Greater(t, refused, 500)
}

func randomInput(r *rand.Rand, kubernetes, containerd []string, candidates []Candidate) PlanInput {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	now, want := pick(kubernetes), pick(kubernetes)
	spec, f := worker(), workerFacts(now, pick(containerd))
	a := kubeletTo(want, want)
	if r.IntN(2) == 0 {
		spec, f, a = controlPlane(), controlPlaneFacts(now, pick(containerd)), controlPlaneTo(want)
	}
	if r.IntN(3) == 0 {
		a.Target.ContainerRuntime = containerdAt(pick(containerd))
	}
	if r.IntN(5) == 0 {
		a.Target.Kubelet = ""
	}
	if r.IntN(3) == 0 {
		f.Packages.Holds = []string{pick([]string{"kubelet", "kubeadm", "containerd", "vim"})}
	}
	if r.IntN(8) == 0 {
		f.Kubelet.Running = pick([]string{"", "27+", now + "-vendor", pick(kubernetes)})
	}
	if r.IntN(8) == 0 {
		f.Packages.Installed[1+r.IntN(3)].Version = packageUpstreamOf(pick(kubernetes)) + "-2.1"
	}
	if r.IntN(10) == 0 {
		a.Skew.MinAPIServer = pick(kubernetes)
	}
	return PlanInput{Machine: "w1", Spec: spec, Assignment: a, Facts: f, Candidates: candidates}
}

func packageUpstreamOf(version string) string {
	v, _ := ParseKubernetes(version)
	return v.Upstream()
}

// No plan of a worker or a control plane takes a kubelet past the API servers it names.
func TestNoPlanTakesAKubeletPastItsAPIServers(t *testing.T) {
	for _, oldest := range []int{34, 35, 36} {
		for ahead := 0; ahead <= 1; ahead++ {
			for now := oldest - 3; now <= oldest; now++ {
				for want := now; want <= oldest+2; want++ {
					a := kubeletTo(release(want), release(oldest))
					a.Skew.MaxAPIServer = release(oldest + ahead)
					p, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: workerFacts(release(now), "2.4.2"), Candidates: candidatesOf([]string{release(want)}, nil)})
					legal := want <= oldest && oldest+ahead-want <= 3
					name := fmt.Sprintf("kubelet %d to %d, API servers %d to %d", now, want, oldest, oldest+ahead)
					if want == now {
						assert.True(t, err == nil && p.Empty(), name)
						continue
					}
					assert.Equal(t, legal, err == nil, name)
				}
			}
		}
	}
}

func BenchmarkNextTarget(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fleet := largeFleet(n)
			b.ReportAllocs()
			for b.Loop() {
				view := NewView(fleet)
				for _, h := range fleet.Hosts {
					view.NextTarget(h, h.Wish)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/machine")
		})
	}
}

func BenchmarkHops(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fleet := largeFleet(n)
			b.ReportAllocs()
			for b.Loop() {
				if hops, blocked := Hops(fleet); len(hops) < n || len(blocked) > 0 {
					b.Fatal(len(hops), blocked)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/machine")
		})
	}
}

func BenchmarkNewPlan(b *testing.B) {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime = containerdAt("2.4.2")
	in := PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: a, Facts: controlPlaneFacts("v1.36.3", "1.7.28"), Candidates: candidatesOf([]string{"v1.37.1", "v1.37.2"}, []string{"1.7.28", "2.4.2"})}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewPlan(in); err != nil {
			b.Fatal(err)
		}
	}
}

// largeFleet is three control planes and many workers, three minors behind.
func largeFleet(n int) Fleet {
	fleet := Fleet{HopPatch: patches(34, 37)}
	for i := range n {
		if i < 3 {
			fleet.Hosts = append(fleet.Hosts, at(fmt.Sprintf("cp%d", i), release(34), release(34), wishBoth(release(37))))
			continue
		}
		wish := wishKubelet(release(37))
		wish.ContainerRuntime = containerdAt("2.4.2")
		h := at(fmt.Sprintf("w%04d", i), release(34), "", wish)
		h.Versions.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28"}
		fleet.Hosts = append(fleet.Hosts, h)
	}
	return fleet
}
