package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

var renewalNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	apiServerCert = "/etc/kubernetes/pki/apiserver.crt"
	day           = 24 * time.Hour
)

func renewingSpec() v1alpha1.MachineSpec {
	spec := controlPlane()
	spec.Kubeadm = &v1alpha1.KubeadmSpec{RenewCertificatesBefore: &metav1.Duration{Duration: 30 * day}}
	return spec
}

func managed(path string, left time.Duration) CertFacts {
	return CertFacts{Path: path, NotAfter: renewalNow.Add(left), ManagedBy: ManagedByKubeadm}
}

// renewalInput is a control plane that has nothing else to do than to renew.
func renewalInput(certs ...CertFacts) PlanInput {
	in := PlanInput{
		Machine: "w1", Spec: renewingSpec(), Facts: controlPlaneFacts("v1.36.3", "2.4.2"), Now: renewalNow,
		Assignment: v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Certificates: true}},
	}
	in.Facts.Certs = certs
	in.Facts.Control.Manifests = map[string]string{"etcd": "3.6.4", "kube-apiserver": "v1.36.3", "kube-controller-manager": "v1.36.3", "kube-scheduler": "v1.36.3"}
	return in
}

func TestCertificatesAreRenewedWithinTheTimeThatSpecNames(t *testing.T) {
	in := renewalInput(managed(apiServerCert, 29*day), managed("/etc/kubernetes/admin.conf", 20*day), managed("/etc/kubernetes/scheduler.conf", 31*day))
	p := plan(t, in)
	var steps []string
	for _, s := range p.Steps {
		steps = append(steps, s.Describe())
	}
	assert.Equal(t, []string{
		"Preflight", "KubeadmRenewCertificates: 2 due, first admin.conf on 2026-03-21", "RestartStaticPod: etcd", "RestartStaticPod: kube-apiserver",
		"RestartStaticPod: kube-controller-manager", "RestartStaticPod: kube-scheduler", "Verify",
	}, steps)
	assert.Equal(t, v1alpha1.DisruptionRestart, p.Disruption)
	assert.Equal(t, v1alpha1.OperationRenewCertificates, p.Type)
	assert.Nil(t, p.Stage)
	later := in
	later.Now = in.Now.Add(time.Hour)
	assert.Equal(t, p.Hash, plan(t, later).Hash, "the hour of the plan is not part of it")
}

func TestCertificatesAreLeftAloneUnlessSpecAsksAndTheyAreDue(t *testing.T) {
	for name, change := range map[string]func(in *PlanInput){
		"not asked for":              func(in *PlanInput) { in.Spec.Kubeadm = nil },
		"asked for without a time":   func(in *PlanInput) { in.Spec.Kubeadm.RenewCertificatesBefore = nil },
		"not due":                    func(in *PlanInput) { in.Facts.Certs = []CertFacts{managed(apiServerCert, 31*day)} },
		"not on this hop":            func(in *PlanInput) { in.Assignment.Target.Certificates = false },
		"the kubelet's own":          func(in *PlanInput) { in.Facts.Certs[0].ManagedBy = ManagedByKubelet },
		"a CA, which kubeadm leaves": func(in *PlanInput) { in.Facts.Certs[0].ManagedBy = "" },
		"without a clock":            func(in *PlanInput) { in.Now = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			in := renewalInput(managed(apiServerCert, day))
			change(&in)
			assert.Empty(t, plan(t, in).Steps)
		})
	}
}

func TestWhatKubeadmCannotRenewIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(in *PlanInput)
		reason string
		says   string
	}{
		"the CA's key is elsewhere": {func(in *PlanInput) { in.Facts.Certs[1].ManagedBy = ManagedByExternal }, ReasonCertificatesExternal, "/etc/kubernetes/admin.conf ends on 2026-03-03"},
		"no kubeadm":                {func(in *PlanInput) { in.Facts.Kubeadm = nil }, ReasonKubeadmMissing, "due for renewal"},
		"certificates that cannot be read": {func(in *PlanInput) {
			in.Facts.Certs, in.Facts.Problems = nil, []Problem{{Field: "certificates", Message: "permission denied"}}
		}, FindingFactUnknown, "permission denied"},
		"no control plane": {func(in *PlanInput) { in.Facts.Control = nil }, ReasonRoleMismatch, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := renewalInput(managed(apiServerCert, day), managed("/etc/kubernetes/admin.conf", 2*day))
			tc.change(&in)
			_, err := NewPlan(in)
			assert.Contains(t, requireBlocked(t, err, tc.reason).Message, tc.says)
		})
	}
}

func TestAControlPlaneUpgradeRenewsByItself(t *testing.T) {
	in := renewalInput(managed(apiServerCert, day))
	in.Assignment = controlPlaneTo("v1.36.4")
	in.Assignment.Target.Certificates = true
	in.Candidates = candidatesOf([]string{"v1.36.4"}, nil)
	for _, s := range plan(t, in).Steps {
		assert.NotEqual(t, StepKubeadmRenewCertificates, s.Kind)
	}
}

func TestARenewalRidesOnAnUpgradeOfTheKubelet(t *testing.T) {
	in := renewalInput(managed(apiServerCert, -day))
	in.Assignment.Target.Kubelet = "v1.36.4"
	in.Assignment.Skew = &v1alpha1.Skew{MinAPIServer: "v1.36.4"}
	in.Candidates = candidatesOf([]string{"v1.36.4"}, nil)
	p := plan(t, in)
	assert.Equal(t, v1alpha1.OperationUpgrade, p.Type)
	assert.Empty(t, reasons(p.Findings), "a certificate that has ended keeps back no plan that renews it first")
	var order []StepKind
	for _, s := range p.Steps {
		if s.Kind == StepKubeadmRenewCertificates || s.Kind == StepRestartUnit {
			order = append(order, s.Kind)
		}
	}
	assert.Equal(t, []StepKind{StepKubeadmRenewCertificates, StepRestartUnit}, order)

	in.Facts.Certs = append(in.Facts.Certs, CertFacts{Path: "/var/lib/kubelet/pki/kubelet-client-current.pem", NotAfter: renewalNow.Add(-day), ManagedBy: ManagedByKubelet})
	_, err := NewPlan(in)
	requireBlocked(t, err, FindingCertificateExpired)
}

func TestAnEstimateBelievesTheHostThatSomethingIsDue(t *testing.T) {
	in := renewalInput()
	in.Estimate, in.Facts.Control.Manifests = true, nil
	p := plan(t, in)
	require.Len(t, p.Steps, 7)
	assert.Equal(t, "KubeadmRenewCertificates: those that are due", p.Steps[1].Describe())
}

// reporting is a Machine at its versions whose host has said how its certificates are.
func reporting(spec v1alpha1.MachineSpec, certs ...CertFacts) *v1alpha1.Machine {
	m := &v1alpha1.Machine{Spec: spec}
	m.Name = "cp1"
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3", ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: "v1.36.3", ControllerManager: "v1.36.3", Scheduler: "v1.36.3"}}
	if c := RenewalCondition(spec, certs, renewalNow); c != nil {
		meta.SetStatusCondition(&m.Status.Conditions, *c)
	}
	return m
}

func TestAMachineWhoseCertificatesAreDueIsOutdatedAndAssignedTheirRenewal(t *testing.T) {
	m := reporting(renewingSpec(), managed(apiServerCert, day))
	ok, reason, message := UpToDate(m.Spec, m.Status)
	assert.False(t, ok)
	assert.Equal(t, ReasonOutdated, reason)
	assert.Contains(t, message, "spec wants certificates renewed 720h0m0s before they end: 1 are due, the first is /etc/kubernetes/pki/apiserver.crt, which ends at 2026-03-02")
	state := StateOf(m, nil, nil)
	a, blocked := NextAssignment(Fleet{Hosts: []HostState{state}}, m)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.OperationRenewCertificates, a.Type)
	assert.Equal(t, v1alpha1.Target{Certificates: true}, a.Target)
	assert.Empty(t, a.KubeadmRole)
	hops, stuck := Hops(Fleet{Hosts: []HostState{state}})
	assert.Empty(t, stuck)
	assert.Len(t, hops, 1, "one window, and it is done")

	m.Spec.Kubeadm = nil
	ok, _, _ = UpToDate(m.Spec, m.Status)
	assert.True(t, ok, "nobody asks for it")
	ok, _, _ = UpToDate(renewingSpec(), reporting(renewingSpec(), managed(apiServerCert, 31*day)).Status)
	assert.True(t, ok)
}

func TestAnUpgradeOfTheControlPlaneTakesTheRenewalAlong(t *testing.T) {
	m := reporting(renewingSpec(), managed(apiServerCert, day))
	m.Spec.Versions = &v1alpha1.Versions{ControlPlane: "v1.36.4", Kubelet: "v1.36.4"}
	hops, stuck := Hops(Fleet{Hosts: []HostState{StateOf(m, nil, nil)}})
	assert.Empty(t, stuck)
	require.Len(t, hops, 1)
	assert.False(t, hops[0].Target.Certificates)
}
