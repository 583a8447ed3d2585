package executor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func wishFor(configuration string) v1alpha1.MachineSpec {
	spec := v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleWorker}}
	if configuration != "" {
		spec.Kubelet = &v1alpha1.KubeletSpec{Configuration: &runtime.RawExtension{Raw: []byte(configuration)}}
	}
	return spec
}

// factsOf are those of a host, as the agent plans by them.
func factsOf(t *testing.T, h *hostfake.Host) upgrade.Facts {
	t.Helper()
	facts, err := h.Host().Facts.Facts(t.Context(), nil)
	require.NoError(t, err)
	facts.Packages.Manager = "apt"
	return facts
}

// configuring is the plan that the planner makes for a wish on a host as it is.
func configuring(t *testing.T, h *hostfake.Host, id, configuration string) *bench {
	t.Helper()
	plan, err := upgrade.NewPlan(upgrade.PlanInput{
		Machine: "w1", Spec: wishFor(configuration), Facts: factsOf(t, h),
		Assignment: v1alpha1.Assignment{ID: id, Type: v1alpha1.OperationReconfigure, Target: v1alpha1.Target{OS: true}},
	})
	require.NoError(t, err)
	require.NotEmpty(t, plan.Steps)
	b := newBench(t, h, plan)
	b.op.ID = id
	return b
}

func differences(t *testing.T, h *hostfake.Host, configuration string) []string {
	t.Helper()
	facts, spec := factsOf(t, h), wishFor(configuration)
	status := v1alpha1.MachineStatus{Versions: facts.Versions(), Kubelet: facts.ObservedKubelet(spec)}
	if ok, _, message := upgrade.UpToDate(spec, status); !ok {
		return []string{message}
	}
	return nil
}

func TestAKubeletRunsWithTheConfigurationOfItsSpec(t *testing.T) {
	const wish = `{"maxPods":200}`
	h := hostfake.New(oldKubernetes, oldRuntime)
	require.NotEmpty(t, differences(t, h, wish))
	rec := configuring(t, h, "grant-1", wish).finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, v1alpha1.OperationReconfigure, rec.Operation.Plan.Type)
	assert.Empty(t, differences(t, h, wish))

	rec = configuring(t, h, "grant-2", `{"maxPods":150}`).finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Empty(t, differences(t, h, `{"maxPods":150}`))

	rec = configuring(t, h, "grant-3", "").finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Empty(t, differences(t, h, ""))
	for _, path := range upgrade.KubeletDropIns {
		assert.NotContains(t, h.Snapshot().Files, path, "what is wished for no more is gone")
	}
}

// A kubelet that does not start on its new configuration gets the old one back, at whichever step it shows.
func TestAConfigurationThatFailsIsPutBack(t *testing.T) {
	for name, tc := range map[string]struct {
		step   int
		effect string
	}{
		"the drop-in is not written": {1, "write " + upgrade.KubeletDropInPath},
		"the kubelet does not start": {3, "restart kubelet.service"},
		"no sandbox comes up":        {4, "probe sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostfake.New(oldKubernetes, oldRuntime)
			require.Equal(t, journal.Successful, configuring(t, h, "grant-1", `{"maxPods":200}`).finish().State)
			before := comparable(h.Snapshot())
			b := configuring(t, h, "grant-2", `{"maxPods":150,"podPidsLimit":100}`)
			b.host.FailIf = b.failWhileForward(tc.step, tc.effect)
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State)
			assert.True(t, rec.RolledBack, rec.Message)
			assert.Equal(t, before, comparable(h.Snapshot()))
			b.host.FailIf = nil
			assert.Empty(t, differences(t, h, `{"maxPods":200}`))
		})
	}
}

func TestAConfigurationThatDoesNotTakeEffectIsPutBack(t *testing.T) {
	h := hostfake.New(oldKubernetes, oldRuntime)
	before := comparable(h.Snapshot())
	b := configuring(t, h, "grant-1", `{"maxPods":200}`)
	b.host.FailIf = func(label string) error {
		if label == "restart kubelet.service" {
			return errors.New("injected: somebody masked the unit") // and it goes on running as it was
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "KubeletConfigurationMismatch", rec.Reason, rec.Message)
	assert.Equal(t, before.Files, comparable(h.Snapshot()).Files)
}

func TestACrashWhileAConfigurationIsWrittenLeadsToTheSameHost(t *testing.T) {
	make := func() *bench {
		return configuring(t, hostfake.New(oldKubernetes, oldRuntime), "grant-1", `{"maxPods":200}`)
	}
	clean := make()
	require.Equal(t, journal.Successful, clean.finish().State)
	want := comparable(clean.host.Snapshot())
	for at := 1; at <= clean.host.Points(); at++ {
		b := make()
		where := b.crashAt(b.host.Points() + at)
		rec := b.finish()
		require.Equal(t, journal.Successful, rec.State, "%s: %s", where, rec.Message)
		require.Equal(t, want, comparable(b.host.Snapshot()), where)
	}
}
