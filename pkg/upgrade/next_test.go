package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// at is an observed host; a control plane has its components at the version of its API server.
func at(name, kubelet, api string, wish v1alpha1.Versions) HostState {
	h := HostState{Name: name, Managed: true, Roles: []v1alpha1.Role{v1alpha1.RoleWorker}, Wish: wish, Versions: v1alpha1.ObservedVersions{
		Kubelet: kubelet, ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28"},
	}}
	if api != "" {
		h.Roles, h.APIServer = []v1alpha1.Role{v1alpha1.RoleControlPlane}, APIServerOnHost
		h.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: api, ControllerManager: api, Scheduler: api}
	}
	return h
}

func wishKubelet(v string) v1alpha1.Versions {
	return v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(v)}
}

func wishBoth(v string) v1alpha1.Versions {
	w := wishKubelet(v)
	w.ControlPlane = w.Kubelet
	return w
}

func TestASingleControlPlaneTakesItsKubeletAlong(t *testing.T) {
	wish := wishBoth("v1.37.2")
	wish.ContainerRuntime = containerdAt("2.4.2")
	cp := at("cp1", "v1.36.3", "v1.36.3", wish)
	fleet := Fleet{Hosts: []HostState{cp, at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))}}
	target, role, skew, blocked := NextTarget(fleet, cp, wish)
	require.Nil(t, blocked)
	assert.Equal(t, wish, target.Versions)
	assert.Equal(t, v1alpha1.KubeadmFirst, role)
	assert.Equal(t, v1alpha1.Skew{MinAPIServer: "v1.37.2", MaxAPIServer: "v1.37.2"}, skew)
}

func TestAWorkerWaitsForItsControlPlane(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2")), w}}
	_, _, _, blocked := NextTarget(fleet, w, w.Wish)
	requireBlocked(t, blocked, ReasonWaitingForControlPlane)
	assert.False(t, blocked.Terminal)
}

func TestAWorkerFollowsAnUpgradedControlPlane(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2")), w}}
	target, role, _, blocked := NextTarget(fleet, w, w.Wish)
	require.Nil(t, blocked)
	assert.Equal(t, w.Wish, target.Versions)
	assert.Equal(t, v1alpha1.KubeadmOther, role)
}

// Kubeadm's own limit is stricter than the policy up to v1.28, and so is the policy for old kubelets.
func TestTheStricterOfPolicyAndKubeadmDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		api, target, kubelet string
		blocked              bool
	}{
		"kubeadm 1.28 refuses two minors behind":       {api: "v1.27.9", target: "v1.28.9", kubelet: "v1.26.4", blocked: true},
		"kubeadm 1.29 takes three minors behind":       {api: "v1.28.9", target: "v1.29.6", kubelet: "v1.26.4"},
		"four minors behind are too many":              {api: "v1.28.9", target: "v1.29.6", kubelet: "v1.25.16", blocked: true},
		"a kubelet before 1.25 may lag by two":         {api: "v1.26.9", target: "v1.27.6", kubelet: "v1.24.9", blocked: true},
		"a patch move needs no kubelet to move first":  {api: "v1.28.8", target: "v1.28.9", kubelet: "v1.26.4"},
		"a kubelet that is not understood is no proof": {api: "v1.36.3", target: "v1.37.2", kubelet: "Unknown", blocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			cp := at("cp1", tc.api, tc.api, wishBoth(tc.target))
			lagging := at("rack1-07", tc.kubelet, "", v1alpha1.Versions{})
			lagging.Managed = false // nodes that Refit does not manage count too
			blocked := Allowed(Fleet{Hosts: []HostState{cp, lagging}}, cp, v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: v1alpha1.KubernetesVersion(tc.target)}})
			if !tc.blocked {
				require.Nil(t, blocked)
				return
			}
			require.NotNil(t, blocked)
			assert.Contains(t, blocked.Message, "rack1-07", "the lagging machine is named")
		})
	}
}

func TestOnlyOneMachineIsTheFirstOfAHop(t *testing.T) {
	wish := wishBoth("v1.37.2")
	cp1, cp2 := at("cp1", "v1.36.3", "v1.36.3", wish), at("cp2", "v1.36.3", "v1.36.3", wish)
	fleet := Fleet{Hosts: []HostState{cp2, cp1}}

	_, role, skew, blocked := NextTarget(fleet, cp1, wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.KubeadmFirst, role)
	assert.Equal(t, v1alpha1.Skew{MinAPIServer: "v1.36.3", MaxAPIServer: "v1.37.2"}, skew)
	_, _, _, blocked = NextTarget(fleet, cp2, wish)
	requireBlocked(t, blocked, ReasonWaitingForFirst)

	t.Run("it stays the first until it has succeeded", func(t *testing.T) {
		begun := cp2
		begun.First = true
		_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, begun}}, cp1, wish)
		requireBlocked(t, blocked, ReasonWaitingForFirst)
	})
	t.Run("a half-finished machine is the first though another name comes before", func(t *testing.T) {
		half := cp2
		half.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: "v1.37.2", ControllerManager: "v1.36.3", Scheduler: "v1.36.3"}
		_, role, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, half}}, half, wish)
		require.Nil(t, blocked)
		assert.Equal(t, v1alpha1.KubeadmFirst, role)
	})
	t.Run("a paused machine is not waited for", func(t *testing.T) {
		paused := cp1
		paused.Sidelined = true
		_, role, _, blocked := NextTarget(Fleet{Hosts: []HostState{paused, cp2}}, cp2, wish)
		require.Nil(t, blocked)
		assert.Equal(t, v1alpha1.KubeadmFirst, role)
	})
	t.Run("the others follow when it is through", func(t *testing.T) {
		done := at("cp1", "v1.36.3", "v1.37.2", wish)
		target, role, _, blocked := NextTarget(Fleet{Hosts: []HostState{done, cp2}}, cp2, wish)
		require.Nil(t, blocked)
		assert.Equal(t, v1alpha1.KubeadmOther, role)
		assert.Equal(t, wish, target.Versions, "the last one takes its kubelet along")
	})
}

func TestTheFirstOfSeveralControlPlanesLeavesItsKubelet(t *testing.T) {
	wish := wishBoth("v1.37.2")
	cp1, cp2 := at("cp1", "v1.36.3", "v1.36.3", wish), at("cp2", "v1.36.3", "v1.36.3", wish)
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, cp2}}, cp1, wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.Versions{ControlPlane: "v1.37.2"}, target.Versions)
}

// Whatever is asked for, no kubelet goes past the oldest live API server.
func TestAKubeletNeverGoesPastTheOldestAPIServer(t *testing.T) {
	w := at("w1", "v1.29.7", "", wishKubelet("v1.30.4"))
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.29.7", "v1.30.4", v1alpha1.Versions{}), at("cp2", "v1.29.7", "v1.29.7", v1alpha1.Versions{}), w}}
	_, _, _, blocked := NextTarget(fleet, w, w.Wish)
	requireBlocked(t, blocked, ReasonWaitingForControlPlane)
	assert.Contains(t, blocked.Message, "v1.29.7")
	requireBlocked(t, Allowed(fleet, w, v1alpha1.Target{Versions: w.Wish}), ReasonSkewViolated)
}

func TestARuntimeDoesNotWaitForAControlPlaneThatWillNotMove(t *testing.T) {
	wish := wishKubelet("v1.37.2")
	wish.ContainerRuntime = containerdAt("1.7.29")
	w := at("w1", "v1.36.3", "", wish)
	w.Versions.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28"}
	still := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.36.3"))
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{still, w}}, w, wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.Versions{ContainerRuntime: wish.ContainerRuntime}, target.Versions)

	coming := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
	_, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{coming, w}}, w, wish)
	requireBlocked(t, blocked, ReasonWaitingForControlPlane)
}

// A control plane that is managed elsewhere is judged by its live API servers.
func TestWithoutAnyKnownAPIServerNoKubeletMoves(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{w}}, w, w.Wish)
	requireBlocked(t, blocked, ReasonSkewUnknown)
	hosted := HostState{Name: "hosted", Roles: []v1alpha1.Role{v1alpha1.RoleControlPlane}, APIServer: APIServerOnHost, Versions: v1alpha1.ObservedVersions{ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: "v1.37.4"}}}
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{w, hosted}}, w, w.Wish)
	require.Nil(t, blocked)
	assert.Equal(t, w.Wish, target.Versions)
}

func TestAnAPIServerThatIsNotUnderstoodBlocksAndStartsNothing(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{at("cp1", "v1.36.3", "27+", v1alpha1.Versions{}), w}}, w, w.Wish)
	requireBlocked(t, blocked, ReasonVersionUnknown)
	assert.Contains(t, blocked.Message, "cp1")
}

// Unknown is not older than anything.
func TestARuntimeThatDoesNotAnswerBlocksAndStartsNothing(t *testing.T) {
	cp := at("cp1", "v1.37.2", "v1.37.2", v1alpha1.Versions{})
	for name, tc := range map[string]struct {
		seen *v1alpha1.ObservedRuntime
		wish v1alpha1.Versions
	}{
		"nothing known":             {nil, v1alpha1.Versions{ContainerRuntime: containerdAt("2.4.2")}},
		"its name alone":            {&v1alpha1.ObservedRuntime{Name: "containerd"}, v1alpha1.Versions{ContainerRuntime: containerdAt("2.4.2")}},
		"no version":                {&v1alpha1.ObservedRuntime{Name: "containerd", Text: "containerd://Unknown"}, v1alpha1.Versions{ContainerRuntime: containerdAt("2.4.2")}},
		"with a kubelet to move on": {&v1alpha1.ObservedRuntime{Name: "containerd"}, v1alpha1.Versions{Kubelet: "v1.37.2", ContainerRuntime: containerdAt("2.4.2")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := at("w1", "v1.36.3", "", tc.wish)
			w.Versions.ContainerRuntime = tc.seen
			target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, w}}, w, w.Wish)
			refused := requireBlocked(t, blocked, ReasonVersionUnknown)
			assert.False(t, refused.Terminal, "it goes on by itself when the runtime answers")
			assert.Contains(t, refused.Message, "see that the runtime runs")
			assert.True(t, Arrived(target))
		})
	}
}

func TestGoingBackIsOnlyForWhatWasRunBefore(t *testing.T) {
	w := at("w1", "v1.37.2", "", wishKubelet("v1.36.3"))
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.37.2", "v1.37.2", v1alpha1.Versions{}), w}}
	_, _, _, blocked := NextTarget(fleet, w, w.Wish)
	refused := requireBlocked(t, blocked, ReasonDowngradeRefused)
	assert.True(t, refused.Terminal)
	assert.Contains(t, refused.Message, "a lower version is refused, unless this machine has run all of spec.versions under Refit before, next to what else it runs now; set spec.versions.kubelet to v1.37.2 or newer")

	w.Record = []v1alpha1.Versions{wishKubelet("v1.36.3")}
	target, _, _, blocked := NextTarget(fleet, w, w.Wish)
	require.Nil(t, blocked)
	assert.Equal(t, w.Wish, target.Versions)

	cp := at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.36.3"))
	cp.Record = []v1alpha1.Versions{cp.Wish}
	_, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{cp}}, cp, cp.Wish)
	requireBlocked(t, blocked, ReasonDowngradeRefused)
}

// Within a minor the policy would allow it, but an API server that is on its way goes first.
func TestAKubeletPatchWaitsForAnAPIServerThatIsOnItsWay(t *testing.T) {
	wish := wishBoth("v1.37.2")
	cp1, cp2 := at("cp1", "v1.37.1", "v1.37.1", wish), at("cp2", "v1.37.1", "v1.37.1", wish)
	w := at("w1", "v1.37.1", "", wishKubelet("v1.37.2"))
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, cp2, w}}, cp1, wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.Versions{ControlPlane: "v1.37.2"}, target.Versions, "the first of two leaves its kubelet")
	_, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{cp1, cp2, w}}, w, w.Wish)
	requireBlocked(t, blocked, ReasonWaitingForControlPlane)

	still := at("cp1", "v1.37.1", "v1.37.1", v1alpha1.Versions{})
	target, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{still, w}}, w, w.Wish)
	require.Nil(t, blocked, "one that stays does not hold up a patch")
	assert.Equal(t, w.Wish, target.Versions)
}

// Skew is by minor, so a worker whose patch is newer than the control plane's waits for its minor as any other.
func TestAWorkerPastTheControlPlanesPatchIsDrainedOnce(t *testing.T) {
	for name, tc := range map[string]struct{ api, kubelet string }{
		"the same patch":                   {"v1.37.2", "v1.37.2"},
		"a newer patch":                    {"v1.37.2", "v1.37.5"},
		"a release after its candidate":    {"v1.37.0-rc.1", "v1.37.0"},
		"an older patch":                   {"v1.37.5", "v1.37.2"},
		"a control plane that goes beyond": {"v1.38.1", "v1.37.5"},
	} {
		t.Run(name, func(t *testing.T) {
			wish := wishKubelet(tc.kubelet)
			wish.ContainerRuntime = containerdAt("2.1.4")
			api := wishBoth(tc.api)
			cp, w := at("cp1", "v1.33.1", "v1.36.1", api), at("w1", "v1.36.1", "", wish)
			hops, blocked := Hops(Fleet{Hosts: []HostState{cp, w}, HopPatch: patches(34, 37)})
			assert.Empty(t, blocked)
			var targets []v1alpha1.Versions
			for _, h := range hops {
				if h.Machine == "w1" {
					targets = append(targets, h.Target.Versions)
				}
			}
			assert.Equal(t, []v1alpha1.Versions{wish}, targets)
		})
	}
	t.Run("a patch that no control plane goes to is not waited for", func(t *testing.T) {
		w := at("w1", "v1.37.1", "", wishKubelet("v1.37.5"))
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{at("cp1", "v1.37.1", "v1.37.1", wishBoth("v1.37.2")), w}}, w, w.Wish)
		require.Nil(t, blocked)
		assert.Equal(t, w.Wish, target.Versions)
	})
}

// The kubelet of cp1 cannot move while cp2 is paused; nothing else needs to wait with it.
func TestAPausedControlPlaneHoldsOnlyTheKubelets(t *testing.T) {
	wish := wishBoth("v1.37.2")
	wish.ContainerRuntime = containerdAt("2.4.2")
	cp1, cp2 := at("cp1", "v1.36.3", "v1.36.3", wish), at("cp2", "v1.36.3", "v1.36.3", wish)
	cp2.Sidelined = true
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, cp2}}, cp1, wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.Versions{ControlPlane: "v1.37.2", ContainerRuntime: wish.ContainerRuntime}, target.Versions)
}

func TestAKubeletThatWaitsForAControlPlaneThatIsStuckNamesIt(t *testing.T) {
	cp1, cp2 := at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2")), at("cp2", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	message := func() string {
		_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, cp2, w}}, w, w.Wish)
		return requireBlocked(t, blocked, ReasonWaitingForControlPlane).Message
	}
	cp2.Sidelined = true
	assert.Contains(t, message(), "cp2 is to go there but is paused, failed or out of service: see why on that machine and mend it")
	assert.NotContains(t, message(), "set spec.versions.controlPlane")

	cp2.Wish = v1alpha1.Versions{}
	assert.Contains(t, message(), "no control-plane machine is on its way there, set spec.versions.controlPlane first")
}

// A kubelet that goes to another minor than its control plane needs another repository and another window.
func TestAKubeletOfAnotherMinorDoesNotRideOnAControlPlaneHop(t *testing.T) {
	wish := wishBoth("v1.37.2")
	wish.Kubelet = "v1.36.3"
	cp := at("cp1", "v1.35.4", "v1.36.3", wish)
	hops, blocked := Hops(Fleet{Hosts: []HostState{cp}})
	assert.Empty(t, blocked)
	require.Len(t, hops, 2)
	assert.Equal(t, v1alpha1.Versions{ControlPlane: "v1.37.2"}, hops[0].Target.Versions)
	assert.Equal(t, v1alpha1.Versions{Kubelet: "v1.36.3"}, hops[1].Target.Versions)
}

// The runtime waits for the last window of a worker that has to catch up first.
func TestAWorkerThatCatchesUpMovesOnlyItsKubelet(t *testing.T) {
	wish := wishKubelet("v1.37.2")
	wish.ContainerRuntime = containerdAt("2.4.2")
	w := at("w1", "v1.33.4", "", wish)
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2")), w}}
	_, _, _, blocked := NextTarget(fleet, fleet.Hosts[0], fleet.Hosts[0].Wish)
	requireBlocked(t, blocked, ReasonWaitingForKubelets)
	target, _, _, blocked := NextTarget(fleet, w, wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.Versions{Kubelet: "v1.36.3"}, target.Versions)

	hops, blockedHosts := Hops(fleet)
	assert.Empty(t, blockedHosts)
	require.Len(t, hops, 3)
	assert.Equal(t, wish, hops[2].Target.Versions)
}

// A host that nobody gave a role counts for skew like any other with a kubelet.
func TestANodeWithoutRolesCountsForSkew(t *testing.T) {
	cp := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
	stray := HostState{Name: "stray", Versions: v1alpha1.ObservedVersions{Kubelet: "v1.33.1"}}
	etcd := HostState{Name: "etcd1", Managed: true, Roles: []v1alpha1.Role{v1alpha1.RoleEtcd}}
	_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, stray, etcd}}, cp, cp.Wish)
	assert.Contains(t, requireBlocked(t, blocked, ReasonWaitingForKubelets).Message, "stray")
	_, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{cp, etcd}}, cp, cp.Wish)
	require.Nil(t, blocked, "a host that carries only etcd has no kubelet to be asked for")
}

// What runs decides, not what spec.roles says: kubelets meet this API server all the same.
func TestAnAPIServerCountsThoughItsMachineLacksTheRole(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	cp1 := at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2"))
	roleless := at("cp2", "v1.36.3", "v1.36.3", wishKubelet("v1.36.3"))
	roleless.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
	for name, fleet := range map[string]Fleet{
		"next to another": {Hosts: []HostState{cp1, roleless, w}}, "alone": {Hosts: []HostState{roleless, w}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, blocked := NextTarget(fleet, w, w.Wish)
			waits := requireBlocked(t, blocked, ReasonWaitingForControlPlane)
			assert.Contains(t, waits.Message, "cp2 runs an API server, but its spec.roles has no ControlPlane: add it")
			_, _, _, blocked = NextTarget(fleet, roleless, roleless.Wish)
			refused := requireBlocked(t, blocked, ReasonRoleMismatch)
			assert.True(t, refused.Terminal)
			assert.Contains(t, refused.Message, "cp2")
			_, all := Hops(fleet)
			assert.Contains(t, all, "cp2")
		})
	}
	t.Run("one that does not say its version is unknown and not nothing", func(t *testing.T) {
		deaf := roleless
		deaf.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: v1alpha1.Unknown, ControllerManager: "v1.36.3", Scheduler: "v1.36.3"}
		_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, deaf, w}}, w, w.Wish)
		requireBlocked(t, blocked, ReasonVersionUnknown)
	})
	t.Run("a host with etcd alone is none", func(t *testing.T) {
		etcd := Facts{Kubelet: &ComponentFacts{Running: "v1.36.3"}, Control: &ControlFacts{Etcd: "3.6.4", Manifests: map[string]string{"etcd": "3.6.4-0"}}}
		m := &v1alpha1.Machine{}
		m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleEtcd}
		m.Status.Versions = etcd.Versions()
		assert.Equal(t, "3.6.4", m.Status.Versions.Etcd)
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, StateOf(m, nil, nil), w}}, w, w.Wish)
		require.Nil(t, blocked)
		assert.Equal(t, w.Wish, target.Versions)
	})
}

// What is broken may be mended, and holds up nobody that it is no danger to.
func TestAKubeletThatDoesNotRunIsJudgedByWhatItWasLast(t *testing.T) {
	dead := func(last, wish string) HostState {
		h := at("broken", v1alpha1.Unknown, "", wishKubelet(wish))
		h.LastKubelet = last
		return h
	}
	there := at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2"))
	for name, tc := range map[string]struct {
		host   HostState
		target string
		reason string
		says   string
	}{
		"another release is a repair":           {dead("v1.36.1", "v1.36.4"), "v1.36.4", "", ""},
		"another minor is a repair":             {dead("v1.36.1", "v1.37.2"), "v1.37.2", "", ""},
		"a release that is wished and there":    {dead("v1.36.1", "v1.36.1"), "", ReasonVersionUnknown, "see why it does not run"},
		"skew holds for it too":                 {dead("v1.36.1", "v1.38.0"), "", ReasonWaitingForControlPlane, ""},
		"it does not go back":                   {dead("v1.36.4", "v1.36.1"), "", ReasonDowngradeRefused, ""},
		"nothing is known of it":                {dead("", "v1.37.2"), "", ReasonVersionUnknown, "broken"},
		"what it was last is no version either": {dead("27+", "v1.37.2"), "", ReasonVersionUnknown, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{there, tc.host}}, tc.host, tc.host.Wish)
			assert.EqualValues(t, tc.target, target.Kubelet)
			if tc.reason == "" {
				require.Nil(t, blocked)
				return
			}
			assert.Contains(t, requireBlocked(t, blocked, tc.reason).Message, tc.says)
		})
	}

	cp := at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
	for name, tc := range map[string]struct{ last, reason string }{
		"one that was near enough does not hold up the control plane": {"v1.36.1", ""},
		"one that would be left behind does":                          {"v1.33.1", ReasonWaitingForKubelets},
		"and one of which nothing is known":                           {"", ReasonVersionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, dead(tc.last, "")}}, cp, cp.Wish)
			if tc.reason == "" {
				require.Nil(t, blocked)
				assert.EqualValues(t, "v1.37.2", target.ControlPlane)
				return
			}
			requireBlocked(t, blocked, tc.reason)
		})
	}
	t.Run("a control plane does not move without its kubelet, which can be repaired first", func(t *testing.T) {
		broken := at("cp1", v1alpha1.Unknown, "v1.36.3", wishBoth("v1.37.2"))
		broken.LastKubelet = "v1.36.3"
		_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{broken}}, broken, broken.Wish)
		assert.Contains(t, requireBlocked(t, blocked, ReasonVersionUnknown).Message, "repair it first with a spec.versions.kubelet of the minor")
		broken.LastKubelet, broken.Wish = "v1.36.1", wishKubelet("v1.36.3")
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{broken}}, broken, broken.Wish)
		require.Nil(t, blocked)
		assert.EqualValues(t, "v1.36.3", target.Kubelet)
	})
	t.Run("the walk of the fleet takes it along", func(t *testing.T) {
		hops, blocked := Hops(Fleet{Hosts: []HostState{cp, dead("v1.36.1", "v1.37.2")}})
		assert.Empty(t, blocked)
		assert.Len(t, hops, 2)
	})
}

// A node that is down loses nothing by going first, and may be what its fix is for.
func TestABrokenNodeWaitsForNoControlPlaneWithinItsMinor(t *testing.T) {
	notReady := func(h HostState) HostState { h.NotReady = true; return h }
	dead := func(h HostState) HostState {
		h.LastKubelet, h.Versions.Kubelet = h.Versions.Kubelet, v1alpha1.Unknown
		return h
	}
	w, cp2 := at("w1", "v1.36.1", "", wishKubelet("v1.36.5")), at("cp2", "v1.36.1", "v1.36.3", wishBoth("v1.36.5"))
	beyond := at("w1", "v1.36.1", "", wishKubelet("v1.37.2"))
	for name, tc := range map[string]struct {
		host  HostState
		cp    string // what the others of the control plane wish for
		want  v1alpha1.Target
		waits string
	}{
		"a worker that is well":             {w, "v1.36.5", v1alpha1.Target{}, ReasonWaitingForControlPlane},
		"a worker that is not ready":        {notReady(w), "v1.36.5", v1alpha1.Target{Versions: w.Wish}, ""},
		"a worker whose kubelet is dead":    {dead(w), "v1.36.5", v1alpha1.Target{Versions: w.Wish}, ""},
		"one whose fix is another minor":    {dead(beyond), "v1.37.2", v1alpha1.Target{}, ReasonWaitingForControlPlane},
		"a control plane that is well":      {cp2, "v1.36.5", v1alpha1.Target{}, ReasonWaitingForFirst},
		"a control plane with a dead one":   {dead(cp2), "v1.36.5", v1alpha1.Target{Versions: wishKubelet("v1.36.5")}, ""},
		"a control plane that is not ready": {notReady(cp2), "v1.36.5", v1alpha1.Target{Versions: wishKubelet("v1.36.5")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := Fleet{Hosts: []HostState{at("cp1", "v1.36.1", "v1.36.3", wishBoth(tc.cp)), tc.host}}
			target, _, skew, blocked := NextTarget(fleet, tc.host, tc.host.Wish)
			if tc.waits != "" {
				requireBlocked(t, blocked, tc.waits)
				return
			}
			require.Nil(t, blocked)
			assert.Equal(t, tc.want, target)
			assert.Equal(t, v1alpha1.Skew{MinAPIServer: "v1.36.3", MaxAPIServer: "v1.36.3"}, skew)
			hops, blockedHosts := Hops(fleet)
			assert.Empty(t, blockedHosts)
			require.NotEmpty(t, hops)
			assert.Equal(t, tc.host.Name, hops[0].Machine, "it goes before all others")
		})
	}
	t.Run("the only control plane is mended before its hop", func(t *testing.T) {
		hops, blocked := Hops(Fleet{Hosts: []HostState{dead(cp2)}})
		assert.Empty(t, blocked)
		require.Len(t, hops, 2)
		assert.Equal(t, []v1alpha1.Target{{Versions: wishKubelet("v1.36.5")}, {Versions: v1alpha1.Versions{ControlPlane: "v1.36.5"}}}, []v1alpha1.Target{hops[0].Target, hops[1].Target})
	})
}
