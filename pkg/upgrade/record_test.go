package upgrade

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// The table of runtimes and kubelets holds whichever of the two moves.
func TestARuntimeThatMovesAloneIsJudgedByTheKubeletThatStays(t *testing.T) {
	for name, tc := range map[string]struct {
		kubelet, from, to, reason string
		dead                      bool
	}{
		"back to what the kubelet no longer takes":   {kubelet: "v1.26.4", from: "1.6.20", to: "1.5.9", reason: ReasonRuntimeTooOld},
		"likewise under a kubelet that does not run": {kubelet: "v1.26.4", from: "1.6.20", to: "1.5.9", reason: ReasonRuntimeTooOld, dead: true},
		"forward, and still too old":                 {kubelet: "v1.38.0", from: "1.7.27", to: "1.7.28", reason: ReasonRuntimeTooOld},
		"back to what the kubelet still takes":       {kubelet: "v1.25.9", from: "1.6.20", to: "1.5.9"},
		"forward":                                    {kubelet: "v1.26.4", from: "1.6.20", to: "1.7.28"},
		"back under a kubelet that is not known":     {kubelet: "27+", from: "1.6.20", to: "1.5.9", reason: ReasonVersionUnknown},
		"forward under one that is not known":        {kubelet: "27+", from: "1.6.20", to: "1.7.28"},
	} {
		t.Run(name, func(t *testing.T) {
			in := PlanInput{
				Machine: "w1", Spec: worker(), Facts: workerFacts(tc.kubelet, tc.from), Candidates: candidatesOf(nil, []string{tc.to}),
				Assignment: v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(tc.to)}}},
				Record:     []v1alpha1.Versions{{ContainerRuntime: containerdAt(tc.to)}},
			}
			if tc.dead {
				in.Facts.Kubelet.Running, in.Facts.Kubelet.Active = "", false
			}
			_, err := NewPlan(in)
			if tc.reason == "" {
				require.NoError(t, err)
				return
			}
			requireBlocked(t, err, tc.reason)
		})
	}
}

// Design: a lower target is for exactly a set that the host has run.
func TestARecordIsOfTheWholeSet(t *testing.T) {
	runtimeTo := func(version string) v1alpha1.Target {
		return v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(version)}}
	}
	kubelet := func(version string) v1alpha1.Target { return v1alpha1.Target{Versions: wishKubelet(version)} }
	record := []v1alpha1.Versions{setOf("v1.36.3", "1.7.28")}
	for name, tc := range map[string]struct {
		kubelet, runtime string
		target           v1alpha1.Target
		refused          bool
	}{
		"the runtime alone under a newer kubelet":      {"v1.37.2", "2.1.4", runtimeTo("1.7.28"), true},
		"the kubelet alone on a newer runtime":         {"v1.37.2", "2.1.4", kubelet("v1.36.3"), true},
		"the runtime under the kubelet of the record":  {"v1.36.3", "2.1.4", runtimeTo("1.7.28"), false},
		"the kubelet on the runtime of the record":     {"v1.37.2", "1.7.28", kubelet("v1.36.3"), false},
		"a patch that the distribution has moved on":   {"v1.37.2", "1.7.29", kubelet("v1.36.3"), false},
		"a patch of what is wished for that never ran": {"v1.37.2", "1.7.28", kubelet("v1.36.2"), true},
		"both together": {"v1.37.2", "2.1.4", v1alpha1.Target{Versions: setOf("v1.36.3", "1.7.28")}, false},
		"a runtime that says nothing contradicts nothing": {"v1.37.2", "", kubelet("v1.36.3"), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := PlanInput{
				Machine: "w1", Spec: worker(), Facts: workerFacts(tc.kubelet, firstOf(tc.runtime, "1.7.28")), Record: record,
				Candidates: candidatesOf([]string{"v1.36.2", "v1.36.3"}, []string{"1.7.28"}), Assignment: kubeletTo("v1.36.3", "v1.37.2"),
			}
			in.Facts.Runtime.Running = tc.runtime
			in.Assignment.Target = tc.target
			_, err := NewPlan(in)

			host := at("w1", tc.kubelet, "", tc.target.Versions)
			host.Versions.ContainerRuntime.Version, host.Record = tc.runtime, record
			fleet := Fleet{Hosts: []HostState{at("cp1", "v1.37.2", "v1.37.2", v1alpha1.Versions{}), host}}
			_, _, _, blocked := NextTarget(fleet, host, host.Wish)
			if !tc.refused {
				require.NoError(t, err)
				require.Nil(t, blocked)
				return
			}
			requireBlocked(t, err, ReasonDowngradeRefused)
			if tc.target.Kubelet != "" { // a runtime is judged by its host
				requireBlocked(t, blocked, ReasonDowngradeRefused)
			}
		})
	}
}
