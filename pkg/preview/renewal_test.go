package preview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// parked is a control plane at its versions, with a certificate that ends in a week.
func parked() preview.Host {
	m := v1alpha1.Machine{}
	m.Name, m.Generation = "cp-1", 1
	m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleControlPlane}
	m.Spec.Kubeadm = &v1alpha1.KubeadmSpec{RenewCertificatesBefore: &metav1.Duration{Duration: 720 * time.Hour}}
	f := upgrade.Facts{
		Host: upgrade.HostFacts{MachineID: "m", BootID: "b"}, OS: upgrade.OSFacts{ID: "debian", Family: "apt"},
		Kubelet: &upgrade.ComponentFacts{Running: "v1.36.3", Installed: "v1.36.3", Active: true}, Kubeadm: &upgrade.ComponentFacts{Installed: "v1.36.3"},
		Control: &upgrade.ControlFacts{
			APIServer: "v1.36.3", ControllerManager: "v1.36.3", Scheduler: "v1.36.3",
			Manifests: map[string]string{"kube-apiserver": "v1.36.3", "kube-controller-manager": "v1.36.3", "kube-scheduler": "v1.36.3"},
		},
		Packages: upgrade.PackageFacts{Manager: "apt"},
		Certs:    []upgrade.CertFacts{{Path: "/etc/kubernetes/pki/apiserver.crt", NotAfter: now.Add(7 * 24 * time.Hour), ManagedBy: upgrade.ManagedByKubeadm}},
	}
	return preview.Host{Machine: m, Facts: &f}
}

func planned(t *testing.T, h preview.Host) preview.MachinePlan {
	t.Helper()
	list := preview.New(preview.Input{Hosts: []preview.Host{h}, Now: now})
	require.Len(t, list.Items, 1)
	return list.Items[0]
}

func TestARenewalIsPlannedOnceFromTheFactsOfTheHost(t *testing.T) {
	p := planned(t, parked())
	assert.Equal(t, preview.StatePending, p.State, "%+v", p.Refusal)
	require.Len(t, p.Hops, 1)
	assert.Equal(t, v1alpha1.Target{Certificates: true}, p.Hops[0].Target)
	assert.Equal(t, v1alpha1.DisruptionRestart, p.Disruption)
	assert.Zero(t, p.Drains)
	assert.Len(t, p.Steps, 6, "no etcd runs here")

	renewed := parked()
	renewed.Facts.Certs[0].NotAfter = now.AddDate(1, 0, 0)
	meta.SetStatusCondition(&renewed.Machine.Status.Conditions, *upgrade.RenewalCondition(renewed.Machine.Spec, parked().Facts.Certs, now))
	assert.Equal(t, preview.StateUpToDate, planned(t, renewed).State, "the facts are younger than what the Machine reports")
}

func TestARenewalIsPlannedFromWhatTheMachineReports(t *testing.T) {
	h := parked()
	s := &h.Machine.Status
	s.Host, s.Versions, s.OS = h.Facts.Identity(), h.Facts.Versions(), h.Facts.ObservedOS(nil)
	meta.SetStatusCondition(&s.Conditions, *upgrade.RenewalCondition(h.Machine.Spec, h.Facts.Certs, now))
	h.Facts = nil
	p := planned(t, h)
	assert.Equal(t, preview.StatePending, p.State, "%+v", p.Refusal)
	require.NotEmpty(t, p.Steps)
	assert.Equal(t, "KubeadmRenewCertificates: those that are due", p.Steps[1].Description)
}
