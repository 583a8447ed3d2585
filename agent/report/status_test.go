package report_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func facts() *upgrade.Facts {
	return &upgrade.Facts{
		Host:    upgrade.HostFacts{MachineID: "m", BootID: "b"},
		OS:      upgrade.OSFacts{ID: "debian", Kernel: "6.1.0-30-amd64"},
		Kubelet: &upgrade.ComponentFacts{Running: "v1.36.3", Installed: "v1.36.3"},
		Kubeadm: &upgrade.ComponentFacts{Installed: "v1.36.3"},
		Runtime: &upgrade.RuntimeFacts{Name: "containerd", Running: "1.7.28", Installed: "1.7.28"},
		Packages: upgrade.PackageFacts{Installed: []upgrade.InstalledPackage{
			{Name: "openssl", Version: "3.0.15-1"}, {Name: "kubelet", Version: "1.36.3-1.1"},
		}},
	}
}

// base is a status with fields of both writers.
func base() v1alpha1.MachineStatus {
	return v1alpha1.MachineStatus{
		Host:     &v1alpha1.HostIdentity{MachineID: "m"},
		Versions: &v1alpha1.ObservedVersions{Kubelet: "v1.35.0"}, ObservedGeneration: 2, ObservedEpoch: 5,
		Plan: &v1alpha1.PlanStatus{AssignmentID: "1-a", Hash: "h"}, Accepted: &v1alpha1.Acceptance{GrantID: "g1"},
		LastOperation: &v1alpha1.Operation{ID: "g1", State: v1alpha1.OperationSuccessful},
		Phase:         v1alpha1.PhaseReady, Grant: &v1alpha1.Grant{ID: "g1"}, Role: "Serving",
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue, Reason: "Staged"},
		},
	}
}

func TestReportTakesOverWhatIsItsOwnAndNothingElse(t *testing.T) {
	got := report.Status(report.State{Base: base(), Now: now})
	want := base()
	assert.Equal(t, want.Versions, got.Versions)
	assert.Equal(t, want.Plan, got.Plan)
	assert.Equal(t, want.Accepted, got.Accepted)
	assert.Equal(t, want.LastOperation, got.LastOperation)
	assert.Equal(t, want.ObservedGeneration, got.ObservedGeneration)
	assert.Equal(t, want.ObservedEpoch, got.ObservedEpoch)
	assert.Empty(t, got.Phase)
	assert.Nil(t, got.Grant)
	assert.Empty(t, got.Role)
	assert.Nil(t, meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady))
	assert.NotNil(t, meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionStaged))
}

func TestFactsBecomeObservedVersions(t *testing.T) {
	f := facts()
	f.Control = &upgrade.ControlFacts{APIServer: "v1.36.3", Scheduler: "v1.36.3", Etcd: "3.6.4"}
	got := report.Status(report.State{Facts: f, Spec: packages("openssl", "telnet"), Now: now})
	assert.Equal(t, &v1alpha1.ObservedVersions{
		Kubelet: "v1.36.3", Kubeadm: "v1.36.3", Etcd: "3.6.4",
		ControlPlane:     &v1alpha1.ObservedControlPlane{APIServer: "v1.36.3", ControllerManager: v1alpha1.Unknown, Scheduler: "v1.36.3"},
		ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28", Text: "containerd://1.7.28"},
	}, got.Versions)
	assert.Equal(t, []v1alpha1.ObservedPackage{{Name: "openssl", Version: "3.0.15-1"}, {Name: "telnet"}}, got.OS.Packages,
		"only packages in spec, those that are absent too")
}

// What runs counts, not what is on disk.
func TestOldProcessIsReportedWithItsRunningVersion(t *testing.T) {
	f := facts()
	f.Kubelet.Installed = "v1.36.4"
	got := report.Status(report.State{Facts: f, Now: now})
	assert.Equal(t, "v1.36.3", got.Versions.Kubelet)
	c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionRestartPending)
	require.NotNil(t, c)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Contains(t, c.Message, "v1.36.4")
}

func TestStoppedKubeletIsUnknownNotItsFile(t *testing.T) {
	f := facts()
	f.Kubelet.Running = ""
	got := report.Status(report.State{Facts: f, Now: now})
	assert.Equal(t, v1alpha1.Unknown, got.Versions.Kubelet)
}

func TestEarliestCertificateDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		left   time.Duration
		status metav1.ConditionStatus
		reason string
	}{
		"valid for long": {90 * 24 * time.Hour, metav1.ConditionFalse, "Valid"},
		"ends soon":      {10 * 24 * time.Hour, metav1.ConditionTrue, "ExpiresSoon"},
		"has ended":      {-time.Hour, metav1.ConditionTrue, "Expired"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Certs = []upgrade.CertFacts{{Path: "/late", NotAfter: now.Add(900 * 24 * time.Hour)}, {Path: "/early", NotAfter: now.Add(tc.left)}}
			c := meta.FindStatusCondition(report.Status(report.State{Facts: f, Now: now}).Conditions, v1alpha1.ConditionCertificatesExpiring)
			require.NotNil(t, c)
			assert.Equal(t, tc.status, c.Status)
			assert.Equal(t, tc.reason, c.Reason)
		})
	}
}

func TestTheFirstEndOfACertificateIsReportedAsATime(t *testing.T) {
	f := facts()
	end := now.Add(900 * 24 * time.Hour)
	f.Certs = []upgrade.CertFacts{{Path: "/never", NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}, {Path: "/late", NotAfter: end.Add(time.Hour)}, {Path: "/first", NotAfter: end}}
	told := report.Status(report.State{Facts: f, Now: now})
	require.NotNil(t, told.CertificateEndTime)
	assert.True(t, told.CertificateEndTime.Equal(&metav1.Time{Time: end.Truncate(time.Second)}))
	assert.Equal(t, report.None, report.Compare(*roundTripped(t, told), told), "what the API server gives back is the same")

	f.Certs = nil
	assert.Equal(t, told.CertificateEndTime, report.Status(report.State{Base: told, Facts: f, Now: now}).CertificateEndTime, "nobody could look")
	assert.Nil(t, report.Status(report.State{Base: told, NewHost: true, Now: now}).CertificateEndTime, "it is another host's")
}

func roundTripped(t *testing.T, s v1alpha1.MachineStatus) *v1alpha1.MachineStatus {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	out := &v1alpha1.MachineStatus{}
	require.NoError(t, json.Unmarshal(text, out))
	return out
}

func TestWhatSpecWantsRenewedIsSaidByTheConditionAndIsNoDrift(t *testing.T) {
	f := facts()
	f.Certs = []upgrade.CertFacts{{Path: "/etc/kubernetes/pki/apiserver.crt", NotAfter: now.Add(50 * 24 * time.Hour), ManagedBy: upgrade.ManagedByKubeadm}}
	spec := v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleControlPlane}}
	spec.Kubeadm = &v1alpha1.KubeadmSpec{RenewCertificatesBefore: &metav1.Duration{Duration: 40 * 24 * time.Hour}}
	s := report.State{Facts: f, Now: now, Spec: spec, Generation: 1}
	before := report.Status(s)
	c := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionCertificatesExpiring)
	require.NotNil(t, c)
	assert.Equal(t, "Valid", c.Reason)

	s.Base, s.Now = before, now.Add(20*24*time.Hour)
	after := report.Status(s)
	c = meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionCertificatesExpiring)
	assert.Equal(t, upgrade.ReasonRenewalDue, c.Reason, "30 days are left")
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	ok, _, _ := upgrade.UpToDate(spec, after)
	assert.False(t, ok)
	drifted := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionDrifted)
	require.NotNil(t, drifted)
	assert.Equal(t, metav1.ConditionFalse, drifted.Status, "the host has not left its spec: time has passed")
}

func TestPlanIsBounded(t *testing.T) {
	plan := &upgrade.Plan{AssignmentID: "1-a", Hash: "h"}
	for range 100 {
		plan.Steps = append(plan.Steps, upgrade.Step{Kind: upgrade.StepRestartUnit, Unit: strings.Repeat("ü", 400)})
		plan.Findings = append(plan.Findings, upgrade.Finding{Message: strings.Repeat("x", 5000)})
	}
	got := report.Status(report.State{Planning: &report.Planning{AssignmentID: "1-a", Generation: 3, Plan: plan}, Now: now})
	assert.Len(t, got.Plan.Steps, 64)
	assert.Equal(t, "and 37 more steps", got.Plan.Steps[63])
	assert.Len(t, got.Plan.Findings, 32)
	assert.EqualValues(t, 3, got.ObservedGeneration)
	for _, text := range append(got.Plan.Steps, got.Plan.Findings[0].Message) {
		assert.LessOrEqual(t, len(text), 256)
		assert.Equal(t, text, strings.ToValidUTF8(text, "?"))
	}
}

// A spec that asked for what no repository has, and was corrected to what runs, leaves no assignment.
func TestARefusalEndsWithItsAssignment(t *testing.T) {
	refused := &v1alpha1.Failure{Reason: "VersionNotFound", Message: "no package kubelet with version 1.99.0", Terminal: true}
	b := base()
	b.Assignment = &v1alpha1.Assignment{ID: "2-b"}
	first := report.Status(report.State{Base: b, Generation: 2, Planning: &report.Planning{AssignmentID: "2-b", Generation: 2, Refused: refused}, Now: now})
	require.True(t, meta.IsStatusConditionFalse(first.Conditions, v1alpha1.ConditionStaged))

	first.Assignment = b.Assignment
	kept := report.Status(report.State{Base: first, Generation: 2, Now: now})
	assert.Equal(t, "VersionNotFound", meta.FindStatusCondition(kept.Conditions, v1alpha1.ConditionStaged).Reason,
		"an agent that has just started knows nothing else yet")

	first.Assignment = nil
	c := meta.FindStatusCondition(report.Status(report.State{Base: first, Generation: 3, Now: now}).Conditions, v1alpha1.ConditionStaged)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Equal(t, "NothingToStage", c.Reason)
	assert.EqualValues(t, 3, c.ObservedGeneration)
}

func TestPlanInTheMakingMovesNoGeneration(t *testing.T) {
	got := report.Status(report.State{Base: base(), Planning: &report.Planning{AssignmentID: "2-b", Generation: 9}, Now: now})
	assert.EqualValues(t, 2, got.ObservedGeneration)
	assert.Equal(t, "1-a", got.Plan.AssignmentID, "the earlier plan stays until there is another")
	c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionStaged)
	assert.Equal(t, metav1.ConditionFalse, c.Status)
}

func record(state journal.State, steps ...journal.StepRecord) journal.Record {
	r := journal.Record{Operation: upgrade.Operation{ID: "g1", Plan: upgrade.Plan{Type: v1alpha1.OperationUpgrade}}, StartTime: now, State: state, Steps: steps}
	for _, s := range steps {
		r.Operation.Plan.Steps = append(r.Operation.Plan.Steps, upgrade.Step{Kind: s.Kind})
	}
	return r
}

func step(kind upgrade.StepKind, state journal.StepState, took time.Duration) journal.StepRecord {
	s := journal.StepRecord{Kind: kind, State: state}
	if state == journal.StepDone {
		end := now.Add(took)
		s.Start, s.End = &now, &end
	}
	return s
}

func TestJournalBecomesAnOperation(t *testing.T) {
	r := record(journal.Open,
		step(upgrade.StepPreflight, journal.StepDone, time.Second),
		step(upgrade.StepInstallPackages, journal.StepDone, 4*time.Second),
		step(upgrade.StepRestartUnit, journal.StepDone, 2*time.Second),
		step(upgrade.StepRestartUnit, journal.StepDone, 3*time.Second),
		step(upgrade.StepVerify, journal.StepBegun, 0))
	op := report.Operation(r, 7*time.Second)
	assert.Equal(t, v1alpha1.OperationProcessing, op.State)
	assert.EqualValues(t, 4, op.StepsDone)
	assert.EqualValues(t, 5, op.StepsTotal)
	assert.Equal(t, "Verify", op.Step)
	assert.Equal(t, "Step 5 of 5: Verify", op.Description)
	phases := map[string]time.Duration{}
	for _, p := range op.Phases {
		phases[p.Name] = p.Duration.Duration
	}
	assert.Equal(t, map[string]time.Duration{
		"Stage": 7 * time.Second, "Verify": time.Second, "Apply": 4 * time.Second, "Restart": 5 * time.Second,
	}, phases)
}

func TestFailedOperationAlwaysHasAReason(t *testing.T) {
	r := record(journal.Failed, step(upgrade.StepVerify, journal.StepFailed, 0))
	r.Message, r.RolledBack = "kubelet does not answer", true
	op := report.Operation(r, 0)
	assert.Equal(t, v1alpha1.OperationFailed, op.State)
	assert.NotEmpty(t, op.Reason)
	assert.True(t, op.RolledBack)
	assert.Contains(t, op.Description, "kubelet does not answer")
}

// A rollback runs steps of its own; the step that people ask for is the one that failed.
func TestAFailedOperationNamesTheStepThatFailed(t *testing.T) {
	for _, state := range []journal.State{journal.Open, journal.Failed} {
		r := record(state, step(upgrade.StepPreflight, journal.StepDone, time.Second), step(upgrade.StepKubeadmUpgrade, journal.StepFailed, 0), step(upgrade.StepVerify, journal.StepPending, 0))
		r.RollingBack, r.FailedStep = true, upgrade.StepKubeadmUpgrade
		r.Reason, r.Message = "KubeadmUpgradeFailed", "it was refused"
		r.Rollback = []journal.StepRecord{step(upgrade.StepRestartUnit, journal.StepDone, 0), step(upgrade.StepVerify, journal.StepDone, 0)}
		assert.Equal(t, "KubeadmUpgrade", report.Operation(r, 0).Step, state)
	}
	refused := record(journal.Failed, step(upgrade.StepPreflight, journal.StepPending, 0))
	refused.RollingBack = true
	assert.Empty(t, report.Operation(refused, 0).Step, "no step failed")
}

// The number counts the very step that is named, wherever the journal stands.
func TestNumberAndNameOfAStepAgree(t *testing.T) {
	a, b, c := upgrade.StepPreflight, upgrade.StepInstallPackages, upgrade.StepVerify
	for name, tc := range map[string]struct {
		states   [4]journal.StepState
		rolling  bool
		failed   upgrade.StepKind
		done     int32
		wantStep upgrade.StepKind
	}{
		"not begun":                    {states: [4]journal.StepState{}, done: 0, wantStep: a},
		"the first runs":               {states: [4]journal.StepState{journal.StepBegun}, done: 0, wantStep: a},
		"between two":                  {states: [4]journal.StepState{journal.StepDone}, done: 1, wantStep: b},
		"the second runs":              {states: [4]journal.StepState{journal.StepDone, journal.StepBegun}, done: 1, wantStep: b},
		"all done":                     {states: [4]journal.StepState{journal.StepDone, journal.StepDone, journal.StepDone, journal.StepDone}, done: 4, wantStep: c},
		"the third failed":             {states: [4]journal.StepState{journal.StepDone, journal.StepDone, journal.StepFailed}, rolling: true, failed: b, done: 2, wantStep: b},
		"the third failed and is back": {states: [4]journal.StepState{journal.StepDone, journal.StepUndone, journal.StepUndone}, rolling: true, failed: b, done: 2, wantStep: b},
		"refused before the first":     {rolling: true, done: 0, wantStep: ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(journal.Open, step(a, tc.states[0], 0), step(b, tc.states[1], 0), step(b, tc.states[2], 0), step(c, tc.states[3], 0))
			for i := range r.Steps {
				r.Steps[i].State = cmp.Or(r.Steps[i].State, journal.StepPending)
			}
			r.RollingBack, r.FailedStep = tc.rolling, tc.failed
			op := report.Operation(r, 0)
			assert.Equal(t, string(tc.wantStep), op.Step)
			assert.Equal(t, tc.done, op.StepsDone)
			if !tc.rolling {
				assert.Contains(t, op.Description, fmt.Sprintf("Step %d of 4: %s", min(tc.done+1, 4), tc.wantStep))
			}
		})
	}
}

// B13: who waits says for whom, and since when.
func TestAStepThatWaitsSaysWhatFor(t *testing.T) {
	r := record(journal.Open, step(upgrade.StepPreflight, journal.StepBegun, 0), step(upgrade.StepVerify, journal.StepPending, 0))
	lock := upgrade.LockFacts{PID: 2448, Command: "unattended-upgr", Path: "/var/lib/dpkg/lock-frontend"}
	r.Steps[0].Message = lock.Waited(now)
	assert.Equal(t, "Step 1 of 2: Preflight, waiting for process 2448 (unattended-upgr), which holds /var/lib/dpkg/lock-frontend, since 2026-11-30T12:00:00Z",
		report.Operation(r, 0).Description)
}

func packages(names ...string) v1alpha1.MachineSpec {
	spec := v1alpha1.MachineSpec{}
	spec.OS = &v1alpha1.OSSpec{}
	for _, name := range names {
		spec.OS.Packages = append(spec.OS.Packages, v1alpha1.Package{Name: name})
	}
	return spec
}

// Drift is what happened without us.
func TestDrift(t *testing.T) {
	wish := v1alpha1.MachineSpec{}
	wish.Versions = &v1alpha1.Versions{Kubelet: "v1.36.3"}
	report1 := func(base v1alpha1.MachineStatus, generation int64, kubelet string, op *v1alpha1.Operation) v1alpha1.MachineStatus {
		f := facts()
		f.Kubelet.Running, f.Kubelet.Installed = kubelet, kubelet
		return report.Status(report.State{Base: base, Generation: generation, Spec: wish, Facts: f, Operation: op, Now: now})
	}
	drift := func(s v1alpha1.MachineStatus) metav1.ConditionStatus {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDrifted)
		require.NotNil(t, c)
		return c.Status
	}
	asWished := report1(v1alpha1.MachineStatus{}, 1, "v1.36.3", nil)
	assert.Equal(t, metav1.ConditionFalse, drift(asWished))

	byHand := report1(asWished, 1, "v1.36.4", nil)
	assert.Equal(t, metav1.ConditionTrue, drift(byHand))
	assert.Equal(t, upgrade.ReasonAheadOfSpec, meta.FindStatusCondition(byHand.Conditions, v1alpha1.ConditionDrifted).Reason)
	assert.Equal(t, metav1.ConditionTrue, drift(report1(byHand, 1, "v1.36.4", nil)), "it stays until the host is back")
	assert.Equal(t, metav1.ConditionTrue, drift(report1(byHand, 1, "", nil)), "a stopped kubelet changes nothing")
	assert.Equal(t, metav1.ConditionFalse, drift(report1(byHand, 1, "v1.36.3", nil)))
	assert.Equal(t, metav1.ConditionFalse, drift(report1(byHand, 2, "v1.36.4", nil)), "another spec is another wish")

	outdated := report1(v1alpha1.MachineStatus{}, 1, "v1.35.0", nil)
	assert.Equal(t, metav1.ConditionFalse, drift(outdated))
	assert.Equal(t, metav1.ConditionFalse, drift(report1(outdated, 1, "v1.35.1", nil)), "a host that never ran its spec has not left it")
	ours := report1(asWished, 1, "v1.37.2", operation("g1"))
	assert.Equal(t, metav1.ConditionFalse, drift(ours), "what we did is no drift")
}

// B21: who changed what is named, and nobody else is.
func TestDriftNamesItsCulprit(t *testing.T) {
	wish := packages("openssl")
	wish.OS.Packages[0].Version = "3.0.15-1"
	wish.Versions = &v1alpha1.Versions{Kubelet: "v1.36.3"}
	f := facts()
	asWished := report.Status(report.State{Generation: 1, Spec: wish, Facts: f, Now: now})
	f.Kubelet.Running = "v1.36.4"
	f.Packages.Installed = []upgrade.InstalledPackage{
		{Name: "openssl", Version: "3.0.15-1", ChangedBy: "apt-get upgrade"},
		{Name: "kubelet", Version: "1.36.4-1.1", ChangedBy: "apt install kubelet, requested by alice (1000)"},
		{Name: "containerd", Version: "1.7.28-1", ChangedBy: "apt-get install containerd"},
	}
	drifted := report.Status(report.State{Base: asWished, Generation: 1, Spec: wish, Facts: f, Now: now})
	c := meta.FindStatusCondition(drifted.Conditions, v1alpha1.ConditionDrifted)
	require.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Contains(t, c.Message, "; package kubelet 1.36.4-1.1 came with: apt install kubelet, requested by alice (1000)")
	assert.NotContains(t, c.Message, "apt-get")
}

func operation(id string) *v1alpha1.Operation {
	return &v1alpha1.Operation{ID: id, State: v1alpha1.OperationSuccessful}
}

func TestACertificateThatNobodyReadsIsNotReported(t *testing.T) {
	f := facts()
	f.Certs = []upgrade.CertFacts{{Path: "/var/lib/kubelet/pki/kubelet.crt", NotAfter: now.Add(-time.Hour)}, {Path: "/etc/kubernetes/pki/apiserver.crt", NotAfter: now.Add(90 * 24 * time.Hour)}}
	of := func(paused bool) *metav1.Condition {
		state := report.State{Facts: f, Now: now}
		state.Spec.Paused = paused
		return meta.FindStatusCondition(report.Status(state).Conditions, v1alpha1.ConditionCertificatesExpiring)
	}
	assert.Equal(t, "Valid", of(false).Reason)
	f.Certs[1].NotAfter = now.Add(20 * 24 * time.Hour)
	assert.Contains(t, of(false).Message, "skipping upgrades also skips kubeadm's yearly renewal")
	assert.NotContains(t, of(false).Message, "the machine is paused")
	assert.Contains(t, of(true).Message, "the machine is paused, so no upgrade renews it")
	f.Certs = append(f.Certs, upgrade.CertFacts{Path: "/etc/kubernetes/pki/ca.crt", NotAfter: now.Add(10 * 24 * time.Hour)})
	assert.Contains(t, of(false).Message, "nothing renews a certificate authority")
	f.Certs = append(f.Certs, upgrade.CertFacts{Path: "/var/lib/kubelet/pki/kubelet-client-current.pem", NotAfter: now.Add(5 * 24 * time.Hour)})
	assert.Contains(t, of(false).Message, "rotateCertificates")
}

func TestHalfInstalledPackagesAreACondition(t *testing.T) {
	f := facts()
	of := func() *metav1.Condition {
		return meta.FindStatusCondition(report.Status(report.State{Facts: f, Now: now}).Conditions, v1alpha1.ConditionPackagesBroken)
	}
	assert.Equal(t, metav1.ConditionFalse, of().Status)
	f.Packages.Installed[1].State = "half-configured"
	require.Equal(t, metav1.ConditionTrue, of().Status)
	assert.Equal(t, upgrade.ReasonPackageDBBroken, of().Reason)
	assert.Contains(t, of().Message, "kubelet")
}
