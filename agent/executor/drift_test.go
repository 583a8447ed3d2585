package executor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/hostpolicy"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Whatever somebody does to Refit's files, the next plan brings the host back, and touches no more than that.
func TestDriftOfTheKubeletsConfigurationIsRepaired(t *testing.T) {
	const wish = `{"maxPods":200}`
	for name, drift := range map[string]func(h *hostfake.Host){
		"a value was changed": func(h *hostfake.Host) {
			h.Files[upgrade.KubeletDropInPath] = hostfake.File{Content: "maxPods: 20\n", Mode: 0o644}
		},
		"the drop-in is gone": func(h *hostfake.Host) { delete(h.Files, upgrade.KubeletDropInPath) },
		"others may write it": func(h *hostfake.Host) {
			f := h.Files[upgrade.KubeletDropInPath]
			f.Mode = 0o666
			h.Files[upgrade.KubeletDropInPath] = f
		},
		"the unit's was changed": func(h *hostfake.Host) {
			h.Files[upgrade.KubeletUnitDropInPath] = hostfake.File{Content: "[Service]\n", Mode: 0o644}
		},
		"the unit's is gone": func(h *hostfake.Host) { delete(h.Files, upgrade.KubeletUnitDropInPath) },
		"both are, and it rebooted": func(h *hostfake.Host) {
			delete(h.Files, upgrade.KubeletUnitDropInPath)
			delete(h.Files, upgrade.KubeletDropInPath)
			h.PowerLoss()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostfake.New(oldKubernetes, oldRuntime)
			require.Equal(t, journal.Successful, configuring(t, h, "grant-1", wish).finish().State)
			asWished := h.Snapshot().Files
			drift(h)
			require.NotEmpty(t, differences(t, h, wish))
			rec := configuring(t, h, "grant-2", wish).finish()
			require.Equal(t, journal.Successful, rec.State, rec.Message)
			assert.Empty(t, differences(t, h, wish))
			assert.Equal(t, asWished, h.Snapshot().Files)
		})
	}
}

// What Refit left is known by its journals, and put back: a source that it wrote, holds that it set.
func TestDriftOfSourcesAndHoldsIsRepaired(t *testing.T) {
	b := worker(t)
	onDisk := func() journal.Record { // as on a host, where the agent reads it
		rec, err := New(Config{StateDir: b.dir, Host: b.host.Host(), Poll: 50 * time.Microsecond, DeadlineCap: 2 * time.Second}).Run(t.Context(), b.op)
		require.NoError(t, err)
		return rec
	}
	require.Equal(t, journal.Successful, onDisk().State)
	kept := store.New(b.dir).Kept()
	assert.ElementsMatch(t, []string{"kubelet", "kubeadm", "kubectl"}, kept.Holds)
	assert.Equal(t, []string{"kubernetes"}, kept.Sources)

	spec := wishFor("")
	spec.PackageSources = []v1alpha1.PackageSource{{Name: "kubernetes", URI: "http://mirror/{minor}/deb/", SignedBy: "k8s"}}
	observe := func() upgrade.Facts {
		facts := factsOf(t, b.host)
		facts.Packages.Sources = []upgrade.SourceFacts{{File: sourceFile, URI: b.host.Snapshot().Sources[sourceFile], Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/k8s.gpg"}}
		return facts
	}
	require.Empty(t, kept.Unmet(observe(), spec))
	b.host.Sources[sourceFile] = "http://elsewhere/v1.37/deb/"
	b.host.Packages["kubelet"] = hostfake.Package{Version: newKubernetes + "-1.1", State: "installed"}
	require.Len(t, kept.Unmet(observe(), spec), 2)

	facts := observe()
	b.host.Policy = rules(hostpolicy.Policy{Sources: hostpolicy.Sources{Allow: []string{"mirror"}}}) // else no source of the host's is at that place any more
	facts.Policy = b.host.Policy
	plan, err := upgrade.NewPlan(upgrade.PlanInput{
		Machine: "w1", Spec: spec, Facts: facts, Kept: kept,
		Assignment: v1alpha1.Assignment{ID: "2-b", Type: v1alpha1.OperationRepair, Target: v1alpha1.Target{OS: true}},
	})
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.DisruptionNone, plan.Disruption)
	b.op = upgrade.Operation{ID: "grant-2", Machine: "w1", Plan: plan}
	rec := onDisk()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Empty(t, kept.Unmet(observe(), spec))
}
