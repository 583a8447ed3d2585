package upgrade

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// patches gives a release of every minor of the window, as a package source would.
func patches(from, to int) map[string]string {
	out := map[string]string{}
	for minor := from; minor <= to; minor++ {
		out[fmt.Sprintf("v1.%d", minor)] = release(minor)
	}
	return out
}

func release(minor int) string { return fmt.Sprintf("v1.%d.3", minor) }

// requireSkew asserts the version-skew policy on a fleet, in words of its own: nothing
// of the planner is used but the parser.
func requireSkew(t *testing.T, hosts []HostState, context string) {
	t.Helper()
	lowest, highest := 1_000, 0
	for _, h := range hosts {
		if h.APIServer != NoAPIServer {
			m := minorOf(t, h.Versions.ControlPlane.APIServer)
			lowest, highest = min(lowest, m), max(highest, m)
		}
	}
	require.LessOrEqual(t, highest-lowest, 1, "API servers are within one minor: %s", context)
	for _, h := range hosts {
		kubelet := minorOf(t, h.Versions.Kubelet)
		allowed := 3
		if kubelet < 25 {
			allowed = 2
		}
		require.LessOrEqual(t, kubelet, lowest, "kubelet of %s is no newer than the oldest API server: %s", h.Name, context)
		require.LessOrEqual(t, highest-kubelet, allowed, "kubelet of %s is not too old: %s", h.Name, context)
	}
}

func minorOf(t *testing.T, text string) int {
	t.Helper()
	var major, minor, patch int
	_, err := fmt.Sscanf(text, "v%d.%d.%d", &major, &minor, &patch)
	require.NoError(t, err, text)
	return minor
}

// replay walks a fleet along its hops, checking each state on the way, and counts the windows of each machine.
func replay(t *testing.T, fleet Fleet, context string) (hosts []HostState, windows map[string]int) {
	t.Helper()
	hops, _ := Hops(fleet)
	windows = map[string]int{}
	hosts = append(hosts, fleet.Hosts...)
	requireSkew(t, hosts, context+" at the start")
	for _, hop := range hops {
		for i, h := range hosts {
			if h.Name != hop.Machine {
				continue
			}
			if v := hop.Target.ControlPlane; v != "" {
				before := minorOf(t, h.Versions.ControlPlane.APIServer)
				require.LessOrEqual(t, minorOf(t, string(v))-before, 1, "one minor per control-plane hop: %s", context)
				requireKubeadmLimit(t, hosts, minorOf(t, string(v)), context)
			}
			hosts[i] = h.After(hop.Target)
		}
		windows[hop.Machine]++
		requireSkew(t, hosts, fmt.Sprintf("%s after %s went to %+v", context, hop.Machine, hop.Target.Versions))
	}
	return hosts, windows
}

func requireKubeadmLimit(t *testing.T, hosts []HostState, target int, context string) {
	t.Helper()
	allowed := 3
	if target < 29 {
		allowed = 1
	}
	for _, h := range hosts {
		require.LessOrEqual(t, target-minorOf(t, h.Versions.Kubelet), allowed, "kubeadm of v1.%d takes the kubelet of %s: %s", target, h.Name, context)
	}
}

// Every fleet of one to three control planes and two workers, from every legal state in
// a window of six minors, to every minor that is not older: skew holds after each hop,
// and each machine arrives.
func TestNoWayThroughSixMinorsEverViolatesSkew(t *testing.T) {
	for _, window := range [][2]int{{24, 29}, {27, 32}, {32, 37}} {
		for controlPlanes := 1; controlPlanes <= 3; controlPlanes++ {
			fleets := 0
			forEachFleet(window[0], window[1], controlPlanes, func(fleet Fleet, target int, context string) {
				hosts, _ := replay(t, fleet, context)
				for _, h := range hosts {
					require.Equal(t, target, minorOf(t, h.Versions.Kubelet), "%s arrives: %s", h.Name, context)
					if h.IsControlPlane() {
						require.Equal(t, target, minorOf(t, h.Versions.ControlPlane.APIServer), "%s arrives: %s", h.Name, context)
					}
				}
				again, blocked := Hops(Fleet{Hosts: hosts, HopPatch: fleet.HopPatch})
				require.Empty(t, again, "nothing is left to do: %s", context)
				require.Empty(t, blocked, context)
				fleets++
			})
			require.Greater(t, fleets, 50, "the enumeration found legal fleets")
		}
	}
}

// The same fleets with one more API server that nobody moves: one whose role is missing
// binds every kubelet to its minor, and one whose version is not known holds all of them.
func TestNoKubeletGoesPastAnAPIServerThatIsNotLookedAtByItsRole(t *testing.T) {
	worker := []v1alpha1.Role{v1alpha1.RoleWorker}
	label := &NodeState{Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}, Kubelet: release(32)}
	state := func(roles []v1alpha1.Role, seen *v1alpha1.ObservedControlPlane, node *NodeState) HostState {
		m := &v1alpha1.Machine{}
		m.Name, m.Spec.Roles = "odd", roles
		m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: release(32), ControlPlane: seen}
		return StateOf(m, node, nil)
	}
	unread := map[string]HostState{
		"a label without a role":       state(worker, nil, label),
		"all that is reported unknown": state(worker, &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: unknown, Scheduler: unknown}, nil),
		"a probe that failed":          state(worker, (&Facts{Problems: []Problem{{Field: "controlPlane"}}}).Versions().ControlPlane, nil),
		"an API server that is silent": state([]v1alpha1.Role{v1alpha1.RoleControlPlane}, &v1alpha1.ObservedControlPlane{APIServer: unknown, ControllerManager: release(32)}, nil),
		"a Node without a Machine":     Unmanaged("odd", *label),
	}
	fleets := 0
	for controlPlanes := 1; controlPlanes <= 2; controlPlanes++ {
		forEachFleet(32, 36, controlPlanes, func(fleet Fleet, _ int, context string) {
			fleets++
			for name, odd := range unread {
				hops, _ := Hops(Fleet{Hosts: append([]HostState{odd}, fleet.Hosts...), HopPatch: fleet.HopPatch})
				for _, hop := range hops {
					require.Empty(t, hop.Target.Kubelet, "%s next to %s", context, name)
					require.Empty(t, hop.Target.ControlPlane, "%s next to %s", context, name)
				}
			}
			roleless := state(worker, fleet.Hosts[0].Versions.ControlPlane, nil)
			roleless.Versions.Kubelet = fleet.Hosts[0].Versions.Kubelet
			replay(t, Fleet{Hosts: append([]HostState{roleless}, fleet.Hosts...), HopPatch: fleet.HopPatch}, context+" next to an API server without its role")
		})
	}
	require.Greater(t, fleets, 50, "the enumeration found legal fleets")
}

// forEachFleet calls visit with every legal mix of API-server and kubelet minors and every target.
func forEachFleet(from, to, controlPlanes int, visit func(fleet Fleet, target int, context string)) {
	for api := from; api <= to; api++ {
		for ahead := 0; ahead <= min(controlPlanes-1, oneIf(api < to)*2); ahead++ {
			for behindA := 0; behindA <= 3; behindA++ {
				for behindB := 0; behindB <= 3; behindB++ {
					for target := api + oneIf(ahead > 0); target <= to; target++ {
						hosts, legal := legalFleet(api, ahead, behindA, behindB, controlPlanes, target)
						if legal {
							visit(Fleet{Hosts: hosts, HopPatch: patches(from, to)}, target, fmt.Sprintf("API v1.%d (%d of %d ahead), kubelets -%d and -%d, to v1.%d", api, ahead, controlPlanes, behindA, behindB, target))
						}
					}
				}
			}
		}
	}
}

func legalFleet(api, ahead, behindA, behindB, controlPlanes, target int) ([]HostState, bool) {
	highest := api + oneIf(ahead > 0)
	allowed := func(kubelet int) bool {
		limit := 3
		if kubelet < 25 {
			limit = 2
		}
		if highest < 29 {
			limit = 1 // a cluster that kubeadm could have brought here
		}
		return highest-kubelet <= limit
	}
	var hosts []HostState
	for i := range controlPlanes {
		own := api + oneIf(i < ahead)
		hosts = append(hosts, at(fmt.Sprintf("cp%d", i+1), release(api-behindA), release(own), wishBoth(release(target))))
	}
	for i, behind := range []int{behindA, behindB} {
		hosts = append(hosts, at(fmt.Sprintf("w%d", i+1), release(api-behind), "", wishKubelet(release(target))))
	}
	return hosts, allowed(api-behindA) && allowed(api-behindB)
}

// The number of windows of each machine on a jump (docs/planning.md has the table): one per minor for a
// control plane, with its kubelet riding on the last where that is the last of them all; one for a worker.
func TestAJumpOverMinorsTakesTheFewestDrains(t *testing.T) {
	for name, tc := range map[string]struct {
		from, controlPlanes int
		want                map[string]int
	}{
		"two minors, one control plane":      {35, 1, map[string]int{"cp1": 2, "w1": 1, "w2": 1}},
		"two minors, three control planes":   {35, 3, map[string]int{"cp1": 3, "cp2": 3, "cp3": 2, "w1": 1, "w2": 1}},
		"three minors, one control plane":    {34, 1, map[string]int{"cp1": 3, "w1": 1, "w2": 1}},
		"three minors, three control planes": {34, 3, map[string]int{"cp1": 4, "cp2": 4, "cp3": 3, "w1": 1, "w2": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, _ := legalFleet(tc.from, 0, 0, 0, tc.controlPlanes, 37)
			_, windows := replay(t, Fleet{Hosts: hosts, HopPatch: patches(tc.from, 37)}, name)
			assert.Equal(t, tc.want, windows)
		})
	}
}

// V1.28.9 to v1.31.2 goes through a release of each minor in between.
func TestAControlPlaneGoesThroughEveryMinor(t *testing.T) {
	cp := at("cp1", "v1.28.9", "v1.28.9", wishBoth("v1.31.2"))
	hops, blocked := Hops(Fleet{Hosts: []HostState{cp}, HopPatch: map[string]string{"v1.29": "v1.29.15", "v1.30": "v1.30.14"}})
	assert.Empty(t, blocked)
	var versions []string
	for _, h := range hops {
		versions = append(versions, string(h.Target.ControlPlane)+" "+string(h.Target.Kubelet))
	}
	assert.Equal(t, []string{"v1.29.15 ", "v1.30.14 ", "v1.31.2 v1.31.2"}, versions)
}

func TestAMinorInBetweenWithoutAKnownReleaseIsNotGuessed(t *testing.T) {
	cp := at("cp1", "v1.34.4", "v1.34.4", wishBoth("v1.36.3"))
	_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp}}, cp, cp.Wish)
	requireBlocked(t, blocked, ReasonHopVersionUnknown)
	assert.Contains(t, blocked.Message, "v1.35")
}

func TestRuntimeAndPackagesRideOnTheLastHopOfAControlPlane(t *testing.T) {
	wish := wishBoth("v1.37.2")
	wish.ContainerRuntime = containerdAt("2.4.2")
	cp := at("cp1", "v1.35.4", "v1.35.4", wish)
	cp.OSPending = true
	hops, _ := Hops(Fleet{Hosts: []HostState{cp}, HopPatch: patches(35, 37)})
	require.Len(t, hops, 2)
	assert.Equal(t, v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: "v1.36.3"}}, hops[0].Target)
	assert.Equal(t, v1alpha1.Target{Versions: wish, OS: true}, hops[1].Target)
}
