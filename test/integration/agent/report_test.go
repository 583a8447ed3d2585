package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

// countAPI counts writes.
type countAPI struct {
	agent.API
	writes atomic.Int64
}

func (a *countAPI) ApplyStatus(ctx context.Context, status v1alpha1.MachineStatus, version string) (*v1alpha1.Machine, error) {
	a.writes.Add(1)
	return a.API.ApplyStatus(ctx, status, version)
}

func TestAgentPublishesFactsWithoutAnAssignmentAndThenIsSilent(t *testing.T) {
	c := newCluster(t)
	counter := &countAPI{}
	c.startAgent(func(api agent.API, _ context.CancelFunc) agent.API { counter.API = api; return counter })
	m := c.eventually("reported", func(m *v1alpha1.Machine) bool { return m.Status.Versions != nil })
	assert.Equal(t, oldVersion, m.Status.Versions.Kubelet)
	assert.Equal(t, "containerd://1.7.28", m.Status.Versions.ContainerRuntime.Text)
	assert.Equal(t, "Debian GNU/Linux 12 (bookworm)", m.Status.OS.PrettyName)
	assert.Equal(t, c.host.machineID, m.Status.Host.MachineID)

	c.coordinate(func(s *v1alpha1.MachineStatus) { s.Phase = v1alpha1.PhaseReady })
	time.Sleep(time.Second)
	assert.EqualValues(t, 1, counter.writes.Load(), "the agent writes only on change")
	assert.Equal(t, v1alpha1.PhaseReady, c.machine().Status.Phase, "the coordinator's fields are left alone")
}

func TestAgentTellsWhatItCanGetOfTheMinorsThatItsControlPlanePassesThrough(t *testing.T) {
	c := newCluster(t)
	c.host.apiServer = "v1.35.4"
	wish := func(versions string) {
		require.NoError(t, c.srv.Apply(t.Context(), []byte(`{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: `+c.name+`, namespace: refit}, spec: {roles: [Worker, ControlPlane], versions: `+versions+`}}`)))
	}
	wish("{kubelet: v1.35.4, controlPlane: v1.35.4}")
	c.startAgent(nil)
	c.eventually("reported", func(m *v1alpha1.Machine) bool { return m.Status.Versions != nil && m.Status.PassedMinors == nil })
	wish("{kubelet: v1.37.2, controlPlane: v1.37.2}")
	c.eventually("looked up", func(m *v1alpha1.Machine) bool {
		p := m.Status.PassedMinors
		return len(p) == 1 && p[0].Minor == "v1.36" && len(p[0].Releases) == 1 && p[0].Releases[0] == oldVersion
	})
	c.host.mu.Lock()
	c.host.apiServer = oldVersion
	c.host.mu.Unlock()
	c.coordinate(func(s *v1alpha1.MachineStatus) { // a plan looks at the host anew
		s.Assignment = &v1alpha1.Assignment{ID: "2-a", Generation: 2, Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: oldVersion}}}
	})
	c.eventually("gone once it is passed", func(m *v1alpha1.Machine) bool { return m.Status.PassedMinors == nil })
}

func TestAgentWaitsForAMachineThatDoesNotExistYet(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.api.Delete(t.Context(), c.name, metav1.DeleteOptions{}))
	c.startAgent(nil)
	time.Sleep(500 * time.Millisecond)
	require.NoError(t, c.srv.Apply(t.Context(), []byte(`{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: `+c.name+`, namespace: refit}, spec: {roles: [Worker]}}`)))
	c.eventually("reported", func(m *v1alpha1.Machine) bool { return m.Status.Versions != nil })
}

func TestRestartedAgentKeepsItsPlanAndWritesNothing(t *testing.T) {
	c := newCluster(t)
	first := c.startAgent(nil)
	plan := c.assign("1-a", 1).Status.Plan
	c.grant("g1")
	c.eventually("successful", succeeded("g1"))
	time.Sleep(300 * time.Millisecond)
	first.stop()
	before := c.machine()

	c.host.set(func() { c.host.candErr = errors.New("the mirror is away") })
	counter := &countAPI{}
	c.startAgent(func(api agent.API, _ context.CancelFunc) agent.API { counter.API = api; return counter })
	c.never("changed", 1500*time.Millisecond, func(m *v1alpha1.Machine) bool { return m.ResourceVersion != before.ResourceVersion })
	assert.Zero(t, counter.writes.Load())
	assert.Equal(t, plan, c.machine().Status.Plan)
}

func TestAPIServerAwayDuringTheWorkLosesNothing(t *testing.T) {
	c := onServer(t, apiserver.Start(t))
	c.host.step = make(chan struct{})
	c.startAgent(nil)
	c.assign("1-a", 1)
	c.grant("g1")
	c.host.step <- struct{}{}
	c.eventually("processing", endedAs("g1", v1alpha1.OperationProcessing))

	require.NoError(t, c.srv.KillAPI())
	close(c.host.step)
	require.Eventually(t, func() bool {
		record, err := c.host.state.Journal("g1")
		return err == nil && record.Finished()
	}, patience, 10*time.Millisecond, "the work goes on without the API server")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.srv.StartAPI(ctx))
	done := c.eventually("successful", succeeded("g1"))
	assert.Equal(t, newVersion, done.Status.Versions.Kubelet)
	assert.Equal(t, 1, c.host.begun("g1"))
}

func TestAgentRestartedWhileTheAPIServerIsAwayGoesOnWithTheWork(t *testing.T) {
	c := onServer(t, apiserver.Start(t))
	first := c.startAgent(nil)
	c.assign("1-a", 1)
	// The unit does not start: the operation is on disk, accepted, and nothing works on it.
	c.host.set(func() { c.host.beforeStart = func() error { first.kill(); return errKilled } })
	c.grant("g1")
	<-first.done
	require.NoError(t, c.srv.KillAPI())
	c.host.set(func() { c.host.beforeStart = nil })

	c.startAgent(nil)
	require.Eventually(t, func() bool {
		record, err := c.host.state.Journal("g1")
		return err == nil && record.Finished()
	}, patience, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.srv.StartAPI(ctx))
	c.eventually("successful", succeeded("g1"))
	assert.Equal(t, 1, c.host.begun("g1"))
}

func TestPassingFaultIsRetriedUntilThereIsAPlan(t *testing.T) {
	c := newCluster(t)
	c.host.candErr = errors.New("Could not connect to mirror")
	c.startAgent(nil)
	c.propose("1-a", 1)
	m := c.eventually("retrying", func(m *v1alpha1.Machine) bool {
		return m.Status.HostFailure != nil && m.Status.HostFailure.Attempts >= 2
	})
	assert.Equal(t, planning.ReasonSourceUnavailable, m.Status.HostFailure.Reason)
	assert.Contains(t, m.Status.HostFailure.Message, "Could not connect to mirror")
	assert.False(t, m.Status.HostFailure.Terminal)
	assert.NotNil(t, m.Status.HostFailure.NextRetryTime)
	staged := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStaged)
	require.NotNil(t, staged)
	assert.Equal(t, metav1.ConditionFalse, staged.Status)
	assert.Equal(t, planning.ReasonSourceUnavailable, staged.Reason)

	c.host.set(func() { c.host.candErr = nil })
	m = c.eventually("planned", func(m *v1alpha1.Machine) bool { return m.Status.Plan != nil })
	assert.Nil(t, m.Status.HostFailure)
}

func TestTerminalRefusalWaitsForARetryOrAnotherAssignment(t *testing.T) {
	for name, ask := range map[string]func(c *cluster){
		"retry annotation":   func(c *cluster) { c.annotate(v1alpha1.AnnotationRetry, "now") },
		"another assignment": func(c *cluster) { c.propose("2-b", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.host.refuse, c.host.findings = true, []upgrade.Finding{{Severity: "Error", Reason: "DiskFull", Message: "/var has 12 MiB left, 900 MiB are needed"}}
			c.startAgent(nil)
			c.propose("1-a", 1)
			m := c.eventually("refused", func(m *v1alpha1.Machine) bool { return m.Status.HostFailure != nil })
			assert.Equal(t, "DiskFull", m.Status.HostFailure.Reason)
			assert.True(t, m.Status.HostFailure.Terminal)
			assert.Nil(t, m.Status.Plan)
			assert.Equal(t, m.Generation, m.Status.ObservedGeneration)

			c.host.set(func() { c.host.refuse, c.host.findings = false, nil })
			c.never("planned", time.Second, func(m *v1alpha1.Machine) bool { return m.Status.Plan != nil })
			ask(c)
			c.eventually("planned", func(m *v1alpha1.Machine) bool { return m.Status.Plan != nil && m.Status.HostFailure == nil })
		})
	}
}

func TestReinstalledHostReportsItselfAndTakesNothingOver(t *testing.T) {
	c := newCluster(t)
	first := c.startAgent(nil)
	c.assign("1-a", 1)
	c.grant("g1")
	c.eventually("successful", succeeded("g1"))
	first.stop()

	// The same disk in another machine, such as a cloned image: its state is not followed.
	c.host.set(func() { c.host.machineID, c.host.bootID, c.host.kubelet = "machine-new", "boot-new", oldVersion })
	c.startAgent(nil)
	m := c.eventually("of the new host", func(m *v1alpha1.Machine) bool { return m.Status.Host.MachineID == "machine-new" })
	assert.Equal(t, oldVersion, m.Status.Versions.Kubelet)
	c.eventually("planned on the new host", func(m *v1alpha1.Machine) bool { return m.Status.Plan != nil })
	time.Sleep(time.Second)
	assert.Equal(t, 1, c.host.begun("g1"), "the grant was the other machine's")
	c.grant("g2")
	c.eventually("successful on the new host", succeeded("g2"))
}

func TestProbeFailureIsReported(t *testing.T) {
	c := newCluster(t)
	c.host.factsErr = errors.New("systemd does not answer")
	c.startAgent(nil)
	m := c.eventually("failing", func(m *v1alpha1.Machine) bool { return m.Status.HostFailure != nil })
	assert.Equal(t, planning.ReasonProbeFailed, m.Status.HostFailure.Reason)
	c.host.set(func() { c.host.factsErr = nil })
	m = c.eventually("reported", func(m *v1alpha1.Machine) bool { return m.Status.Versions != nil })
	assert.Nil(t, m.Status.HostFailure)
}

func TestProgressIsWrittenSparingly(t *testing.T) {
	c := newCluster(t)
	c.host.step = make(chan struct{})
	counter := &countAPI{}
	c.startAgent(func(api agent.API, _ context.CancelFunc) agent.API { counter.API = api; return counter })
	c.assign("1-a", 1)
	c.grant("g1")
	c.host.step <- struct{}{}
	c.eventually("processing", endedAs("g1", v1alpha1.OperationProcessing))
	before := counter.writes.Load()
	for range 6 {
		c.host.step <- struct{}{}
		time.Sleep(100 * time.Millisecond)
	}
	assert.LessOrEqual(t, counter.writes.Load()-before, int64(1), "steps within %s are one write", report.ProgressInterval)
	close(c.host.step)
	c.eventually("successful", succeeded("g1"))
}

// The credential of one host is worth nothing anywhere else.
func TestAgentCredentialReachesItsOwnMachineOnly(t *testing.T) {
	c := newCluster(t)
	other := newCluster(t)
	client, err := dynamic.NewForConfig(c.srv.As(t, "system:node:"+c.name, "system:nodes"))
	require.NoError(t, err)
	mine := client.Resource(machines).Namespace(namespace)
	_, err = mine.Get(t.Context(), c.name, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = mine.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + c.name})
	require.NoError(t, err)
	for what, try := range map[string]func() error{
		"list all": func() error { _, err := mine.List(t.Context(), metav1.ListOptions{}); return err },
		"list another's": func() error {
			_, err := mine.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + other.name})
			return err
		},
		"get another's": func() error { _, err := mine.Get(t.Context(), other.name, metav1.GetOptions{}); return err },
		"write its spec": func() error {
			_, err := mine.Patch(t.Context(), c.name, "application/merge-patch+json", []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
			return err
		},
		"write another's": func() error {
			_, err := mine.Patch(t.Context(), other.name, "application/merge-patch+json", []byte(`{"status":{"role":"Standby"}}`), metav1.PatchOptions{}, "status")
			return err
		},
		"delete its object": func() error { return mine.Delete(t.Context(), c.name, metav1.DeleteOptions{}) },
	} {
		assert.Error(t, try(), what)
	}
}

func TestWhatAHostNoLongerKnowsIsWrittenAsUnknown(t *testing.T) {
	full := v1alpha1.MachineStatus{
		Host: &v1alpha1.HostIdentity{MachineID: "0123456789abcdef0123456789abcdef"},
		Versions: &v1alpha1.ObservedVersions{
			Kubelet: oldVersion, ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: oldVersion},
			ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28"},
		},
		OS:      &v1alpha1.ObservedOS{ID: "debian", Kernel: "6.1.0-28-amd64"},
		Kubelet: &v1alpha1.ObservedKubelet{DropIn: "sha256:1", Configuration: &runtime.RawExtension{Raw: []byte(`{"maxPods":77}`)}},
	}
	for name, less := range map[string]func(*v1alpha1.MachineStatus){
		"the whole host":         func(s *v1alpha1.MachineStatus) { s.Host = &v1alpha1.HostIdentity{} },
		"all versions":           func(s *v1alpha1.MachineStatus) { s.Versions = &v1alpha1.ObservedVersions{} },
		"the control plane":      func(s *v1alpha1.MachineStatus) { s.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{} },
		"the runtime":            func(s *v1alpha1.MachineStatus) { s.Versions.ContainerRuntime = &v1alpha1.ObservedRuntime{} },
		"the system":             func(s *v1alpha1.MachineStatus) { s.OS = &v1alpha1.ObservedOS{} },
		"the kubelet's settings": func(s *v1alpha1.MachineStatus) { s.Kubelet = &v1alpha1.ObservedKubelet{} },
		"one kind of settings":   func(s *v1alpha1.MachineStatus) { s.Kubelet.Configuration = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			client, err := watch.NewClient(c.srv.As(t, "system:node:"+c.name, "system:nodes"), namespace, c.name)
			require.NoError(t, err)
			_, err = client.ApplyStatus(t.Context(), full, "")
			require.NoError(t, err)
			want := *full.DeepCopy()
			less(&want)
			_, err = client.ApplyStatus(t.Context(), want, "")
			require.NoError(t, err)
			got := c.machine().Status
			assert.Equal(t, report.None, report.Compare(got, want), "%+v", got)
		})
	}
}
