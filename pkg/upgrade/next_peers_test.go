package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// half is a control plane in the middle of an upgrade: its API server is there, the rest is not.
func half(name, kubelet, api, rest string, wish v1alpha1.Versions) HostState {
	h := at(name, kubelet, api, wish)
	h.Versions.ControlPlane.ControllerManager, h.Versions.ControlPlane.Scheduler = rest, rest
	return h
}

func wishControlPlane(v string) v1alpha1.Versions {
	return v1alpha1.Versions{ControlPlane: v1alpha1.KubernetesVersion(v)}
}

// verdict is what is next for a host, or the reason why nothing is.
type verdict struct {
	hop    string
	role   v1alpha1.KubeadmRole
	reason string
	says   []string
}

func requireVerdicts(t *testing.T, fleet Fleet, want map[string]verdict) {
	t.Helper()
	for _, h := range fleet.Hosts {
		v, ok := want[h.Name]
		if !ok {
			continue
		}
		target, role, _, blocked := NextTarget(fleet, h, h.Wish)
		if v.reason != "" {
			message := requireBlocked(t, blocked, v.reason).Message
			for _, part := range v.says {
				assert.Contains(t, message, part, h.Name)
			}
			continue
		}
		require.Nil(t, blocked, h.Name)
		assert.EqualValues(t, v.hop, target.ControlPlane, h.Name)
		assert.Equal(t, v.role, role, h.Name)
	}
}

func TestAHalfDoneControlPlaneEndsItsHopBeforeTheNextMinor(t *testing.T) {
	first, other := v1alpha1.KubeadmFirst, v1alpha1.KubeadmOther
	wish := wishControlPlane("v1.37.2")
	broken := half("cp-1", "v1.35.7", "v1.36.3", "v1.35.7", wish)
	sidelined := broken
	sidelined.Sidelined = true
	for name, tc := range map[string]struct {
		hosts []HostState
		want  map[string]verdict
		hops  []string
	}{
		"alone": {
			[]HostState{broken},
			map[string]verdict{"cp-1": {hop: "v1.36.3", role: first}},
			[]string{"cp-1 v1.36.3 First", "cp-1 v1.37.2 First"},
		},
		"next to a peer that is through": {
			[]HostState{broken, at("cp-2", "v1.35.7", "v1.36.3", wish)},
			map[string]verdict{"cp-1": {hop: "v1.36.3", role: other}, "cp-2": {reason: ReasonWaitingForControlPlane, says: []string{"cp-1", "in part"}}},
			[]string{"cp-1 v1.36.3 Other", "cp-1 v1.37.2 First", "cp-2 v1.37.2 Other"},
		},
		"next to a peer that has not begun": {
			[]HostState{broken, at("cp-2", "v1.35.7", "v1.35.7", wish)},
			map[string]verdict{"cp-1": {hop: "v1.36.3", role: first}, "cp-2": {reason: ReasonWaitingForFirst, says: []string{"cp-1"}}},
			[]string{"cp-1 v1.36.3 First", "cp-2 v1.36.3 Other", "cp-1 v1.37.2 First", "cp-2 v1.37.2 Other"},
		},
		"as the second of two, though another name comes before": {
			[]HostState{half("cp-2", "v1.35.7", "v1.36.3", "v1.35.7", wish), at("cp-1", "v1.35.7", "v1.35.7", wish)},
			map[string]verdict{"cp-2": {hop: "v1.36.3", role: first}, "cp-1": {reason: ReasonWaitingForFirst, says: []string{"cp-2"}}},
			nil,
		},
		"at the patch that a peer runs of its minor": {
			[]HostState{broken, at("cp-2", "v1.35.7", "v1.36.5", wish)},
			map[string]verdict{"cp-1": {hop: "v1.36.5", role: other}},
			nil,
		},
		"in which the controller manager alone lags": {
			[]HostState{func() HostState {
				h := at("cp-1", "v1.36.3", "v1.36.3", wish)
				h.Versions.ControlPlane.ControllerManager = "v1.35.7"
				return h
			}()},
			map[string]verdict{"cp-1": {hop: "v1.36.3", role: first}},
			nil,
		},
		"in which a component does not run while another lags": {
			[]HostState{func() HostState {
				h := half("cp-1", "v1.35.7", "v1.36.3", "v1.35.7", wish)
				h.Versions.ControlPlane.ControllerManager = v1alpha1.Unknown
				return h
			}()},
			map[string]verdict{"cp-1": {hop: "v1.36.3", role: first}},
			nil,
		},
		"whose wish is of the minor it is at goes straight there": {
			[]HostState{half("cp-1", "v1.35.7", "v1.36.3", "v1.35.7", wishControlPlane("v1.36.5"))},
			map[string]verdict{"cp-1": {hop: "v1.36.5", role: first}},
			[]string{"cp-1 v1.36.5 First"},
		},
		"that nobody moves holds the next minor of its peers": {
			[]HostState{sidelined, at("cp-2", "v1.35.7", "v1.36.3", wish)},
			map[string]verdict{"cp-2": {reason: ReasonWaitingForControlPlane, says: []string{"cp-1"}}},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := Fleet{Hosts: tc.hosts, HopPatch: patches(35, 37)}
			requireVerdicts(t, fleet, tc.want)
			if tc.hops == nil {
				return
			}
			hops, blocked := Hops(fleet)
			assert.Empty(t, blocked)
			var got []string
			for _, h := range hops {
				got = append(got, h.Machine+" "+string(h.Target.ControlPlane)+" "+string(h.KubeadmRole))
			}
			assert.Equal(t, tc.hops, got)
		})
	}
	t.Run("also where an assignment asks for it", func(t *testing.T) {
		fleet := Fleet{Hosts: []HostState{broken}}
		assert.Contains(t, requireBlocked(t, Allowed(fleet, broken, v1alpha1.Target{Versions: wish}), ReasonSkewViolated).Message, "that ends first, at v1.36.3")
		assert.Nil(t, Allowed(fleet, broken, v1alpha1.Target{Versions: wishControlPlane("v1.36.3")}))
	})
}

func TestAComponentThatDoesNotSayItsVersionHoldsItsControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		manager, scheduler, wish string
		says                     []string
	}{
		"a controller manager that was never reported":     {"", "v1.36.3", "v1.37.2", []string{"controller manager of cp-1", "never reported"}},
		"a controller manager that is down":                {v1alpha1.Unknown, "v1.36.3", "v1.37.2", []string{"controller manager of cp-1"}},
		"a controller manager that is down, at the wish":   {v1alpha1.Unknown, "v1.36.3", "v1.36.3", []string{"controller manager of cp-1", "crictl ps -a"}},
		"a scheduler that is down, at the wish":            {"v1.36.3", v1alpha1.Unknown, "v1.36.3", []string{"scheduler of cp-1"}},
		"a scheduler that is down, with a patch to go to":  {"v1.36.3", v1alpha1.Unknown, "v1.36.5", []string{"scheduler of cp-1"}},
		"a scheduler that says what is no Kubernetes, too": {"v1.36.3", "27+", "v1.37.2", []string{`scheduler of cp-1 reports version "27+"`}},
	} {
		t.Run(name, func(t *testing.T) {
			cp := at("cp-1", "v1.36.3", "v1.36.3", wishControlPlane(tc.wish))
			cp.Versions.ControlPlane.ControllerManager, cp.Versions.ControlPlane.Scheduler = tc.manager, tc.scheduler
			requireVerdicts(t, Fleet{Hosts: []HostState{cp}}, map[string]verdict{"cp-1": {reason: ReasonVersionUnknown, says: tc.says}})
		})
	}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		t.Run("the host itself makes no empty plan of it: "+name, func(t *testing.T) {
			in := controlPlaneHop("v1.36.3", "v1.36.3")
			in.Facts.Control.Manifests = map[string]string{"kube-apiserver": "v1.36.3", "kube-controller-manager": "v1.36.3", "kube-scheduler": "v1.36.3"}
			assert.Empty(t, plan(t, in).Steps)
			if name == "kube-scheduler" {
				in.Facts.Control.Scheduler = ""
			} else {
				in.Facts.Control.ControllerManager = ""
			}
			_, err := NewPlan(in)
			assert.Contains(t, requireBlocked(t, err, ReasonVersionUnknown).Message, name)
		})
	}
}

func TestNoControlPlaneGoesToAVersionBelowAPeers(t *testing.T) {
	first := v1alpha1.KubeadmFirst
	ahead := func(wish string) HostState { return at("cp-1", "v1.36.3", "v1.37.2", wishControlPlane(wish)) }
	behind := func(wish string) HostState { return at("cp-2", "v1.36.3", "v1.36.3", wishControlPlane(wish)) }
	refused := verdict{reason: ReasonDowngradeRefused, says: []string{"cp-2", "cp-1", "v1.37.2 or newer"}}
	for name, tc := range map[string]struct {
		hosts []HostState
		want  map[string]verdict
	}{
		"of another minor":                {[]HostState{ahead(""), behind("v1.36.5")}, map[string]verdict{"cp-2": refused}},
		"of another patch":                {[]HostState{ahead(""), behind("v1.37.1")}, map[string]verdict{"cp-2": refused}},
		"that is at its wish":             {[]HostState{ahead("v1.37.2"), behind("v1.37.1")}, map[string]verdict{"cp-2": refused}},
		"that is refused itself":          {[]HostState{ahead("v1.37.1"), behind("v1.37.1")}, map[string]verdict{"cp-1": {reason: ReasonDowngradeRefused}, "cp-2": refused}},
		"but to the same":                 {[]HostState{ahead("v1.37.2"), behind("v1.37.2")}, map[string]verdict{"cp-2": {hop: "v1.37.2", role: v1alpha1.KubeadmOther}}},
		"but to a newer":                  {[]HostState{ahead(""), behind("v1.37.3")}, map[string]verdict{"cp-2": {hop: "v1.37.3", role: first}}},
		"and is told so while it is even": {[]HostState{at("cp-1", "v1.36.3", "v1.36.3", wishControlPlane("v1.37.2")), behind("v1.36.5")}, map[string]verdict{"cp-1": {hop: "v1.37.2", role: first}, "cp-2": refused}},
		"and so by a patch":               {[]HostState{at("cp-1", "v1.36.3", "v1.36.3", wishControlPlane("v1.37.2")), behind("v1.37.1")}, map[string]verdict{"cp-1": {hop: "v1.37.2", role: first}, "cp-2": refused}},
		"with the names the other way": {
			[]HostState{at("cp-1", "v1.36.3", "v1.36.3", wishControlPlane("v1.36.5")), at("cp-2", "v1.36.3", "v1.36.3", wishControlPlane("v1.37.2"))},
			map[string]verdict{"cp-1": {reason: ReasonDowngradeRefused, says: []string{"cp-1", "cp-2", "v1.37.2 or newer"}}, "cp-2": {hop: "v1.37.2", role: first}},
		},
		"but one that is paused overtakes nobody": {
			[]HostState{func() HostState {
				h := at("cp-1", "v1.36.3", "v1.36.3", wishControlPlane("v1.37.2"))
				h.Sidelined = true
				return h
			}(), behind("v1.36.5")},
			map[string]verdict{"cp-2": {hop: "v1.36.5", role: first}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			requireVerdicts(t, Fleet{Hosts: tc.hosts, HopPatch: patches(35, 37)}, tc.want)
		})
	}
	t.Run("whatever an assignment says", func(t *testing.T) {
		fleet := Fleet{Hosts: []HostState{ahead(""), behind("")}}
		requireBlocked(t, Allowed(fleet, fleet.Hosts[1], v1alpha1.Target{Versions: wishControlPlane("v1.37.1")}), ReasonDowngradeRefused)
	})
	t.Run("and no worker waits for one that is refused so", func(t *testing.T) {
		w := at("w1", "v1.36.1", "", wishKubelet("v1.36.5"))
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{ahead(""), behind("v1.36.5"), w}}, w, w.Wish)
		require.Nil(t, blocked)
		assert.EqualValues(t, "v1.36.5", target.Kubelet)
	})
}

func TestOnlyAMachineThatGoesThereNextIsWaitedForAsTheFirst(t *testing.T) {
	t.Run("not one that waits for the kubelet of who waits for it", func(t *testing.T) {
		cp1, cp2 := at("cp-1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2")), at("cp-2", "v1.33.9", "v1.36.3", wishBoth("v1.36.5"))
		fleet := Fleet{Hosts: []HostState{cp1, cp2}}
		requireVerdicts(t, fleet, map[string]verdict{
			"cp-1": {reason: ReasonWaitingForKubelets, says: []string{"cp-2"}},
			"cp-2": {hop: "v1.36.5", role: v1alpha1.KubeadmFirst},
		})
		hops, _ := Hops(fleet)
		require.NotEmpty(t, hops)
		assert.Equal(t, "cp-1", hops[len(hops)-1].Machine)
		windows := map[string]int{}
		for _, h := range hops {
			windows[h.Machine]++
		}
		assert.Equal(t, 2, windows["cp-2"], "its kubelet goes to its wish at once: %+v", hops)
	})
	t.Run("not one that goes through another minor before", func(t *testing.T) {
		cp1, cp2 := at("cp-1", "v1.35.4", "v1.35.4", wishBoth("v1.37.2")), at("cp-2", "v1.35.4", "v1.35.4", wishBoth("v1.35.7"))
		_, role, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, cp2}}, cp2, cp2.Wish)
		require.Nil(t, blocked, "where cp-1 has no known release to go through, cp-2 goes on")
		assert.Equal(t, v1alpha1.KubeadmFirst, role)
	})
	t.Run("not one that is refused for its kubelet", func(t *testing.T) {
		cp1, cp2 := at("cp-1", "v1.36.4", "v1.36.3", wishBoth("v1.36.3")), at("cp-2", "v1.36.3", "v1.35.7", wishControlPlane("v1.37.2"))
		cp1.Versions.ControlPlane.ControllerManager, cp1.Versions.ControlPlane.Scheduler = "v1.35.7", "v1.35.7"
		requireVerdicts(t, Fleet{Hosts: []HostState{cp1, cp2}}, map[string]verdict{
			"cp-1": {reason: ReasonDowngradeRefused},
			"cp-2": {hop: "v1.36.3", role: v1alpha1.KubeadmFirst},
		})
	})
	t.Run("but one that was granted it, though what it runs is not known for now", func(t *testing.T) {
		cp1, cp2 := at("cp-1", "v1.36.3", "v1.37.2", wishBoth("v1.37.2")), at("cp-2", "v1.36.3", "v1.36.3", wishBoth("v1.37.2"))
		cp1.First, cp1.Versions.ControlPlane.Scheduler = true, v1alpha1.Unknown
		requireVerdicts(t, Fleet{Hosts: []HostState{cp1, cp2}}, map[string]verdict{"cp-2": {reason: ReasonWaitingForFirst, says: []string{"cp-1"}}})
	})
}

func TestNoWorkerWaitsForAControlPlaneThatStandsUntilAPersonActs(t *testing.T) {
	wish := wishControlPlane("v1.37.2")
	paused := half("cp-2", "v1.36.1", "v1.36.3", "v1.35.7", wish)
	paused.Sidelined = true
	cp1 := at("cp-1", "v1.36.1", "v1.36.3", wish)
	refused := at("cp-2", "v1.33.9", "v1.36.5", wishBoth("v1.36.3"))
	for name, tc := range map[string]struct {
		cp     HostState
		behind []HostState
		moves  bool
	}{
		"one on its way": {cp1, nil, false},
		"one that waits for a kubelet on its way":       {cp1, []HostState{at("old", "v1.33.9", "", wishKubelet("v1.37.2"))}, false},
		"one that waits for a kubelet at its wish":      {cp1, []HostState{at("old", "v1.33.9", "", wishKubelet("v1.33.9"))}, true},
		"one that waits for a paused peer, half done":   {cp1, []HostState{paused}, true},
		"one that waits for a machine refused for good": {cp1, []HostState{refused}, true},
		"one that is refused for its kubelet":           {at("cp-1", "v1.36.4", "v1.36.3", v1alpha1.Versions{ControlPlane: "v1.37.2", Kubelet: "v1.36.3"}), nil, true},
		"one that is to go below a peer":                {at("cp-1", "v1.36.1", "v1.36.3", wishControlPlane("v1.36.5")), []HostState{at("cp-2", "v1.36.1", "v1.36.7", v1alpha1.Versions{})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := at("w1", "v1.36.1", "", wishKubelet("v1.36.5"))
			target, _, _, blocked := NextTarget(Fleet{Hosts: append([]HostState{tc.cp, w}, tc.behind...)}, w, w.Wish)
			if !tc.moves {
				requireBlocked(t, blocked, ReasonWaitingForControlPlane)
				return
			}
			require.Nil(t, blocked)
			assert.EqualValues(t, "v1.36.5", target.Kubelet)
		})
	}
	t.Run("and of another minor it says which one stands", func(t *testing.T) {
		w := at("w1", "v1.36.1", "", wishKubelet("v1.37.2"))
		_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp1, w, at("old", "v1.33.9", "", wishKubelet("v1.33.9"))}}, w, w.Wish)
		assert.Contains(t, requireBlocked(t, blocked, ReasonWaitingForControlPlane).Message, "cp-1 is to go there and cannot: see why on that machine and mend it")
	})
}

func TestNoWorkerIsDrainedForAControlPlaneThatStays(t *testing.T) {
	w := at("w1", "v1.31.2", "", wishKubelet("v1.37.2"))
	paused := at("cp-1", "v1.34.9", "v1.34.9", wishControlPlane("v1.37.2"))
	paused.Sidelined = true
	for name, cp := range map[string]HostState{
		"at its wish":               at("cp-1", "v1.34.9", "v1.34.9", wishControlPlane("v1.34.9")),
		"without a wish":            at("cp-1", "v1.34.9", "v1.34.9", v1alpha1.Versions{}),
		"paused":                    paused,
		"with a patch alone to do":  at("cp-1", "v1.34.9", "v1.34.9", wishControlPlane("v1.34.10")),
		"whose next is not a minor": at("cp-1", "v1.34.9", "v1.34.9", wishControlPlane("v1.34.1")),
	} {
		t.Run(name, func(t *testing.T) {
			target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, w}, HopPatch: patches(34, 37)}, w, w.Wish)
			requireBlocked(t, blocked, ReasonWaitingForControlPlane)
			assert.Empty(t, target.Kubelet)
		})
	}
	t.Run("one on its way is what it is drained for", func(t *testing.T) {
		cp := at("cp-1", "v1.34.9", "v1.34.9", wishControlPlane("v1.37.2"))
		target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, w}, HopPatch: patches(34, 37)}, w, w.Wish)
		require.Nil(t, blocked)
		assert.EqualValues(t, "v1.34.9", target.Kubelet)
	})
}

func TestAKubeletThatIsAtItsWishIsToldToWishForMore(t *testing.T) {
	cp := at("cp-1", "v1.37.2", "v1.37.2", wishControlPlane("v1.38.0"))
	stays, moves := at("w1", "v1.34.9", "", wishKubelet("v1.34.9")), at("w2", "v1.34.9", "", wishKubelet("v1.37.2"))
	foreign := at("w3", "v1.34.9", "", v1alpha1.Versions{})
	foreign.Managed = false
	for name, tc := range map[string]struct {
		hosts    []HostState
		says     string
		saysNone string
	}{
		"at its wish":       {[]HostState{cp, stays}, "too far behind: w1, which are not to go far enough: raise their spec.versions.kubelet first", "upgrade them"},
		"on its way":        {[]HostState{cp, moves}, "too far behind: w2; upgrade them first", "raise"},
		"of no Machine":     {[]HostState{cp, foreign}, "too far behind: w3; upgrade them first", "raise"},
		"some of each kind": {[]HostState{cp, stays, moves}, "w2; upgrade them first; and w1, which are not to go far enough: raise", "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, blocked := NextTarget(Fleet{Hosts: tc.hosts}, cp, cp.Wish)
			message := requireBlocked(t, blocked, ReasonWaitingForKubelets).Message
			assert.Contains(t, message, tc.says)
			assert.NotContains(t, message, tc.saysNone)
		})
	}
}

func TestAControlPlaneThatHasNeverReportedIsSaidToBeSo(t *testing.T) {
	cp := at("cp-1", "v1.36.3", "v1.36.3", wishControlPlane("v1.37.2"))
	cp.Versions.ControlPlane = nil
	_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp}}, cp, cp.Wish)
	message := requireBlocked(t, blocked, ReasonVersionUnknown).Message
	assert.Contains(t, message, "the API server of cp-1 has never reported its version")
	assert.NotContains(t, message, `""`)
}
