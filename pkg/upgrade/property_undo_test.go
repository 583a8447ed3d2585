package upgrade

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

var (
	undoKubelets = []string{"v1.35.4", "v1.36.2", "v1.36.3", "v1.37.1", "v1.37.2"}
	undoRuntimes = []string{"1.7.27", "1.7.28", "2.0.1", "2.4.1", "2.4.2"}
)

func setOf(kubelet, runtime string) v1alpha1.Versions {
	return v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(kubelet), ContainerRuntime: containerdAt(runtime)}
}

// position of a version in a list that is sorted from old to new.
func position(list []string, version string) int {
	for i, v := range list {
		if v == version {
			return i
		}
	}
	return -1
}

// A lower version is for a set that the host has run, all of it, and for a runtime's patch; nothing else goes back.
func TestOnlyARecordedSetMayBeGoneBackTo(t *testing.T) {
	minorOfRuntime := map[string]int{"1.7.27": 0, "1.7.28": 0, "2.0.1": 1, "2.4.1": 2, "2.4.2": 2}
	undone, refused, forward := 0, 0, 0
	r := rand.New(rand.NewPCG(7, 11))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for i := range 4000 {
		nowK, nowR, wantK, wantR := pick(undoKubelets), pick(undoRuntimes), pick(undoKubelets), pick(undoRuntimes)
		in := PlanInput{
			Machine: "w1", Spec: worker(), Assignment: kubeletTo(wantK, "v1.37.2"), Facts: workerFacts(nowK, nowR),
			Candidates: candidatesOf(undoKubelets, undoRuntimes),
		}
		in.Assignment.Target.ContainerRuntime = containerdAt(wantR)
		recorded := false
		for range r.IntN(3) {
			k, c := pick(undoKubelets), pick(undoRuntimes)
			if r.IntN(3) == 0 {
				k, c = wantK, wantR
			}
			in.Record = append(in.Record, setOf(k, c))
			recorded = recorded || k == wantK && c == wantR
		}
		back := position(undoKubelets, wantK) < position(undoKubelets, nowK)
		runtimeBack := position(undoRuntimes, wantR) < position(undoRuntimes, nowR)
		minorBack := minorOfRuntime[wantR] < minorOfRuntime[nowR]
		p, err := NewPlan(in)
		if (back || minorBack) && !recorded {
			requireBlocked(t, err, ReasonDowngradeRefused)
			refused++
			continue
		}
		require.NoError(t, err, "case %d: %s/%s to %s/%s, recorded %v", i, nowK, nowR, wantK, wantR, recorded)
		after := run(t, in.Facts, p)
		assert.True(t, SameKubernetes(after.Kubelet.Running, wantK) && SameRuntime(after.Runtime.Running, wantR), "case %d", i)
		if runtimeBack && !minorBack && !recorded {
			assert.Contains(t, reasons(p.Findings), FindingRuntimeDowngrade, "case %d: a patch that goes back is said", i)
		}
		if back || minorBack {
			undone++
		} else {
			forward++
		}
	}
	assert.Greater(t, undone, 100)
	assert.Greater(t, refused, 500)
	assert.Greater(t, forward, 500)
}

// Whatever was done can be undone as a set, and leads to exactly what was there.
func TestAnUndoLeadsBackToTheSetBefore(t *testing.T) {
	for _, from := range undoKubelets {
		for _, to := range undoKubelets {
			for _, runtime := range [][2]string{{"1.7.28", "2.4.2"}, {"2.0.1", "2.4.2"}, {"2.4.2", "2.4.2"}} {
				if position(undoKubelets, to) < position(undoKubelets, from) {
					continue
				}
				in := PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo(to, "v1.37.2"), Facts: workerFacts(from, runtime[0]), Candidates: candidatesOf(undoKubelets, undoRuntimes)}
				in.Assignment.Target.ContainerRuntime = containerdAt(runtime[1])
				there := run(t, in.Facts, plan(t, in))

				back := in
				back.Facts, back.Record = there, []v1alpha1.Versions{setOf(from, runtime[0])}
				back.Assignment = kubeletTo(from, "v1.37.2")
				back.Assignment.Target.ContainerRuntime = containerdAt(runtime[0])
				again := run(t, there, plan(t, back))
				assert.True(t, SameKubernetes(again.Kubelet.Running, from), "%s to %s and back", from, to)
				assert.True(t, SameRuntime(again.Runtime.Running, runtime[0]))
				back.Facts = again
				assert.True(t, new(plan(t, back)).Empty(), "and nothing is left to do")
			}
		}
	}
}

// No control plane ever goes back, recorded or not.
func TestNoRecordTakesAControlPlaneBack(t *testing.T) {
	for i, now := range undoKubelets {
		for _, want := range undoKubelets[:i] {
			in := controlPlaneHop(now, want)
			in.Candidates = candidatesOf(undoKubelets, nil)
			in.Record = []v1alpha1.Versions{{ControlPlane: v1alpha1.KubernetesVersion(want), Kubelet: v1alpha1.KubernetesVersion(want)}}
			_, err := NewPlan(in)
			requireBlocked(t, err, ReasonDowngradeRefused)
		}
	}
}

// The policy in words of its own: nothing of the planner is used but the plan.
func TestNoPlanWhateverItsInputViolatesSkew(t *testing.T) {
	var kubernetes []string
	for minor := 32; minor <= 37; minor++ {
		kubernetes = append(kubernetes, release(minor))
	}
	candidates := candidatesOf(kubernetes, []string{"1.7.28", "2.4.2"})
	r := rand.New(rand.NewPCG(5, 9))
	planned, refused := 0, 0
	for i := range 6000 {
		in := randomInput(r, kubernetes, []string{"1.7.28", "2.4.2"}, candidates)
		low := r.IntN(len(kubernetes))
		in.Assignment.Skew = &v1alpha1.Skew{MinAPIServer: kubernetes[low], MaxAPIServer: kubernetes[min(low+r.IntN(2), len(kubernetes)-1)]}
		if want := in.Assignment.Target.ControlPlane; want != "" && r.IntN(2) == 0 {
			in.Assignment.Skew = &v1alpha1.Skew{MinAPIServer: string(want), MaxAPIServer: string(want)}
		}
		p, err := NewPlan(in)
		if err != nil {
			refused++
			continue
		}
		if p.Empty() {
			continue
		}
		after := run(t, in.Facts, p)
		oldest, newest := minorOf(t, in.Assignment.Skew.MinAPIServer), minorOf(t, in.Assignment.Skew.MaxAPIServer)
		if in.Assignment.Target.Kubelet != "" && !SameKubernetes(in.Facts.Kubelet.Running, after.Kubelet.Running) {
			kubelet := minorOf(t, after.Kubelet.Running)
			require.LessOrEqual(t, kubelet, oldest, "case %d: no kubelet is newer than the oldest API server", i)
			require.LessOrEqual(t, newest-kubelet, 3, "case %d: nor more than three minors behind the newest", i)
		}
		if in.Facts.Control != nil {
			step := minorOf(t, after.Control.APIServer) - minorOf(t, in.Facts.Control.APIServer)
			require.Contains(t, []int{0, 1}, step, "case %d: a control plane goes by one minor, and never back", i)
		}
		planned++
	}
	assert.Greater(t, planned, 300)
	assert.Greater(t, refused, 300)
}

// What the host and the repositories list in another order is the same, and so is the plan.
func TestThePlanDoesNotDependOnTheOrderOfWhatIsListed(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	kubernetes, containerd := []string{"v1.36.2", "v1.36.3", "v1.37.2"}, []string{"1.7.28", "2.4.2"}
	same := 0
	for i := range 500 {
		in := randomInput(r, kubernetes, containerd, candidatesOf(kubernetes, containerd))
		first, err := NewPlan(in)
		other := in
		other.Candidates = shuffled(r, in.Candidates)
		other.Facts.Packages.Installed = shuffled(r, in.Facts.Packages.Installed)
		other.Facts.Packages.Holds = shuffled(r, in.Facts.Packages.Holds)
		other.Facts.Packages.Sources = shuffled(r, in.Facts.Packages.Sources)
		second, again := NewPlan(other)
		require.Equal(t, err, again, "case %d", i)
		require.Equal(t, first.Hash, second.Hash, "case %d", i)
		if err == nil && !first.Empty() {
			same++
		}
	}
	assert.Greater(t, same, 50)
}

func shuffled[T any](r *rand.Rand, list []T) []T {
	out := append([]T{}, list...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// What was found on the way is told, and is no part of what will be done.
func TestFindingsAreNoPartOfTheHash(t *testing.T) {
	quiet := kubeletHop("v1.36.3", "v1.36.4")
	noisy := kubeletHop("v1.36.3", "v1.36.4")
	noisy.Facts.Conflicts = []ConflictFacts{{Name: "kured"}}
	noisy.Facts.Hold = &HoldFacts{Path: "/etc/refit/hold"}
	noisy.Facts.Reboot.Required = true
	noisy.Facts.Problems = []Problem{{Field: "conflictingManagers", Message: "m"}}
	a, b := plan(t, quiet), plan(t, noisy)
	assert.Empty(t, a.Findings)
	assert.Len(t, b.Findings, 4)
	assert.Equal(t, a.Hash, b.Hash)
}
