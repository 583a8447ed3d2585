package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const keptCertificates = "/var/lib/refit/backup/certificates/"

// renewalPlan renews the certificates of a host whose earliest ends in a week.
func renewalPlan(end time.Time) upgrade.Plan {
	steps := []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{ControlPlane: "v" + oldKubernetes}},
		{Kind: upgrade.StepKubeadmRenewCertificates, Renewal: &upgrade.Renewal{Before: "720h0m0s", Due: []upgrade.CertFacts{
			{Path: "/etc/kubernetes/pki/apiserver.crt", NotAfter: end, ManagedBy: upgrade.ManagedByKubeadm},
			{Path: "/etc/kubernetes/scheduler.conf", NotAfter: end, ManagedBy: upgrade.ManagedByKubeadm},
		}}},
	}
	for _, pod := range upgrade.ControlPlanePods() {
		steps = append(steps, upgrade.Step{Kind: upgrade.StepRestartStaticPod, Pod: pod})
	}
	steps = append(steps, upgrade.Step{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{ControlPlane: "v" + oldKubernetes, Kubelet: "v" + oldKubernetes}})
	return sealed(upgrade.Plan{AssignmentID: "10-abc", Type: v1alpha1.OperationRenewCertificates, Disruption: v1alpha1.DisruptionRestart, Steps: steps})
}

// weekAhead is one time for all hosts of a test run: they are compared.
var weekAhead = time.Now().Add(7 * 24 * time.Hour).Truncate(time.Second).UTC()

func renewing(t *testing.T) *bench {
	end := weekAhead
	h := hostfake.New(oldKubernetes, oldRuntime).WithControlPlane("v" + oldKubernetes).WithCertificates(end)
	h.RenewedUntil = end.AddDate(1, 0, 0)
	return newBench(t, h, renewalPlan(end))
}

// withoutKept leaves out the copies that wait for a rollback that is over.
func withoutKept(s hostfake.State) hostfake.State {
	s = comparable(s)
	for file := range s.Files {
		if strings.HasPrefix(file, keptCertificates) {
			delete(s.Files, file)
		}
	}
	return s
}

func TestRenewedCertificatesAreLoadedByEveryComponent(t *testing.T) {
	b := renewing(t)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	s := b.host.Snapshot()
	want := b.host.RenewedUntil.UTC().Format(time.RFC3339)
	for component, loaded := range s.Loaded {
		assert.Equal(t, want, loaded, component)
		assert.Equal(t, 2, s.Containers[component], "%s is restarted once", component)
	}
	assert.NotEqual(t, want, s.Files[keptCertificates+"pki/apiserver.crt"].Content, "what was there is kept")
	assert.EqualValues(t, 0o600, s.Files[keptCertificates+"pki/apiserver.crt"].Mode)
	assert.NotContains(t, fmt.Sprint(rec.Steps[1].Undo), s.Files[keptCertificates+"admin.conf"].Content, "no key is in the journal")
}

// labels of the effect of each step.
var renewalEffects = []string{
	"facts", "kubeadm certs renew", "stop etcd-1", "answer of kube-apiserver", "container of kube-controller-manager",
	"stop kube-scheduler-1", "kubelet version",
}

func TestARenewalThatFailsAtAnyStepLeavesTheOldCertificatesLoaded(t *testing.T) {
	require.Len(t, renewalEffects, len(renewing(t).op.Plan.Steps), "one effect for each step")
	for i, effect := range renewalEffects {
		t.Run(fmt.Sprintf("%d %s", i, effect), func(t *testing.T) {
			b := renewing(t)
			before := withoutKept(b.host.Snapshot())
			b.host.FailIf = b.failWhileForward(i, effect)
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State)
			assert.Contains(t, rec.Message, "injected")
			assert.Equal(t, rec.Steps[i].Kind, rec.Telling())
			assert.Equal(t, before, withoutKept(b.host.Snapshot()))
			assert.Empty(t, rec.NotUndone)
			assert.Equal(t, i > 0, rec.RolledBack, rec.Message)
			pods := 0
			for _, s := range rec.Rollback {
				if s.Kind == upgrade.StepRestartStaticPod {
					pods++
				}
			}
			assert.Equal(t, max(0, min(i-1, 4)), pods, "only what was restarted is restarted again")
		})
	}
}

func TestARenewalThatKubeadmOnlyReportsHasFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		until  func(now time.Time) time.Time
		reason string
	}{
		"nothing was renewed":           {func(now time.Time) time.Time { return now }, "CertificateNotRenewed"},
		"it would be due again at once": {func(now time.Time) time.Time { return now.Add(20 * 24 * time.Hour) }, "CertificateTooShort"},
	} {
		t.Run(name, func(t *testing.T) {
			b := renewing(t)
			before := withoutKept(b.host.Snapshot())
			b.host.RenewedUntil = tc.until(time.Now())
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State)
			assert.Equal(t, tc.reason, rec.Reason, rec.Message)
			assert.True(t, rec.RolledBack)
			assert.Equal(t, before, withoutKept(b.host.Snapshot()))
		})
	}
}

// What an earlier renewal kept is not what a later one goes back to.
func TestARenewalKeepsWhatIsThereNow(t *testing.T) {
	b := renewing(t)
	require.Equal(t, journal.Successful, b.finish().State)
	again := renewalPlan(b.host.RenewedUntil)
	b.op = upgrade.Operation{ID: "grant-2", Machine: "w1", Plan: again}
	b.host.RenewedUntil = b.host.RenewedUntil.AddDate(1, 0, 0)
	before := withoutKept(b.host.Snapshot())
	b.host.FailIf = b.failWhileForward(2, "stop etcd-2")
	rec := b.finish()
	require.True(t, rec.RolledBack, rec.Message)
	assert.Equal(t, before, withoutKept(b.host.Snapshot()))
}
