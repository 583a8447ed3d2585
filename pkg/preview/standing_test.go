package preview_test

import (
	"strings"
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

func TestHalfInstalledPackagesAreToldWhereNothingIsToBeDone(t *testing.T) {
	there := func(edit func(h *preview.Host)) preview.Host {
		h := parked()
		h.Facts.Certs = nil
		edit(&h)
		return h
	}
	for name, tc := range map[string]struct {
		host  preview.Host
		warns bool
	}{
		"none":         {there(func(*preview.Host) {}), false},
		"by the facts": {there(func(h *preview.Host) { h.Facts.Packages.Broken = []string{"vim"} }), true},
		"by what the Machine reports": {there(func(h *preview.Host) {
			h.Machine.Status.Versions = h.Facts.Versions()
			meta.SetStatusCondition(&h.Machine.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionPackagesBroken, Status: metav1.ConditionTrue, Reason: "HalfInstalled", Message: "packages are half installed on this host: vim",
			})
			h.Facts = nil
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := planned(t, tc.host)
			require.Equal(t, preview.StateUpToDate, p.State, "%+v", p.Refusal)
			var told []string
			for _, f := range p.Findings {
				if f.Reason == upgrade.ReasonPackageDBBroken {
					assert.Equal(t, upgrade.SeverityWarning, f.Severity)
					assert.Contains(t, f.Message, "vim")
					told = append(told, f.Message)
				}
			}
			assert.Equal(t, tc.warns, len(told) == 1, told)
		})
	}
}

func TestACertificateThatRefusesAPlanIsToldOnce(t *testing.T) {
	const refusing, other = "/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/front-proxy-client.crt"
	for name, tc := range map[string]struct {
		certs []upgrade.CertFacts
		told  []string
	}{
		"one that is over":              {[]upgrade.CertFacts{{Path: refusing, NotAfter: now.Add(-time.Hour)}}, nil},
		"and one that will be over yet": {[]upgrade.CertFacts{{Path: refusing, NotAfter: now.Add(-time.Hour)}, {Path: other, NotAfter: now.Add(20 * 24 * time.Hour)}}, []string{other}},
	} {
		t.Run(name, func(t *testing.T) {
			h := parked()
			h.Machine.Spec.Kubeadm = nil
			h.Machine.Spec.Versions = &v1alpha1.Versions{ControlPlane: "v1.36.4"}
			h.Facts.Certs, h.Facts.OS.CgroupVersion = tc.certs, 2
			h.Facts.Packages.Installed = []upgrade.InstalledPackage{{Name: "kubeadm", Version: "1.36.3-1.1"}, {Name: "kubelet", Version: "1.36.3-1.1"}}
			h.Facts.Packages.Sources = []upgrade.SourceFacts{{File: "/etc/apt/sources.list", URI: "https://mirror.example", Suites: []string{"/"}, Provides: []string{"kubeadm", "kubelet"}}}
			p := planned(t, h)
			require.NotNil(t, p.Refusal)
			require.Equal(t, upgrade.FindingCertificateExpired, p.Refusal.Reason)
			assert.Contains(t, p.Refusal.Message, refusing)
			var told []string
			for _, f := range p.Findings {
				if strings.HasPrefix(f.Reason, "Certificate") {
					told = append(told, f.Message)
				}
			}
			require.Len(t, told, len(tc.told), told)
			for i, path := range tc.told {
				assert.Contains(t, told[i], path)
			}
		})
	}
}
