package upgrade

import (
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// certificateWarning is how long before its end a certificate is worth a word in a plan
	// that goes on, and may renew it.
	certificateWarning = 14 * 24 * time.Hour
	// CertificateWarning is how long before its end a host is to be seen to that nothing is done to.
	CertificateWarning = 30 * 24 * time.Hour
)

// certificatesUnread are not looked at by anything that a plan restarts: nobody
// verifies the certificate that a kubelet has signed for itself, which no kubelet
// ever renews (https://github.com/kubernetes/kubernetes/issues/99418), and the
// super-admin's is for people.
var certificatesUnread = []string{"/var/lib/kubelet/pki/kubelet.crt", "/etc/kubernetes/super-admin.conf"}

// Lapsing are the certificates that the host's programs read and that end before a time, the first to end first.
func (f *Facts) Lapsing(before time.Time) []CertFacts {
	out := slices.DeleteFunc(slices.Clone(f.Certs), func(c CertFacts) bool {
		return slices.Contains(certificatesUnread, c.Path) || !c.NotAfter.Before(before)
	})
	slices.SortStableFunc(out, func(a, b CertFacts) int { return a.NotAfter.Compare(b.NotAfter) })
	return out
}

// noEnd is what RFC 5280 writes into a certificate that is to have no end.
var noEnd = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// FirstCertificateEnd is when the first certificate ends that the host's programs read; it is not
// known where none could be read, or none has an end.
func (f *Facts) FirstCertificateEnd() (end time.Time, known bool) {
	ending := f.Lapsing(noEnd)
	if len(ending) == 0 {
		return time.Time{}, false
	}
	return ending[0].NotAfter.UTC().Truncate(time.Second), true
}

// Renewal says who renews a certificate. kubeadm does when it upgrades a control plane,
// and at no other time: who skips upgrades for a year skips that too.
func (c CertFacts) Renewal() string {
	switch base := path.Base(c.Path); {
	case base == "ca.crt" || strings.HasSuffix(base, "-ca.crt"):
		return "nothing renews a certificate authority: replace it by hand in time"
	case strings.HasPrefix(c.Path, "/var/lib/kubelet/") || base == "kubelet.conf":
		return "the kubelet renews it by itself where rotateCertificates is on: see why it has not"
	case strings.HasPrefix(c.Path, "/etc/kubernetes/"):
		return "kubeadm renews it with each upgrade of this host's control plane and at no other time, so skipping upgrades also skips kubeadm's yearly renewal: upgrade, set spec.kubeadm.renewCertificatesBefore, or kubeadm certs renew all and restart the static pods"
	}
	return "renew it"
}

// LapsingFindings warn of the certificates of a host that nothing is done to now.
func (f *Facts) LapsingFindings(now time.Time) []Finding {
	var out []Finding
	for _, c := range f.Lapsing(now.Add(CertificateWarning)) {
		if date := c.NotAfter.Format(time.DateOnly); c.NotAfter.After(now) {
			out = append(out, warning(FindingCertificateExpiring, "the certificate %s ends on %s; %s", c.Path, date, c.Renewal()))
		} else {
			out = append(out, warning(FindingCertificateExpired, "the certificate %s ended on %s; %s", c.Path, date, c.Renewal()))
		}
	}
	return out
}

// expiringCertificates refuses to restart a component into a certificate that is over.
func expiringCertificates(p *planner) []Finding {
	if p.in.Now.IsZero() {
		return nil
	}
	var out []Finding
	for _, c := range p.in.Facts.Certs {
		if p.renews() && c.ManagedBy == ManagedByKubeadm {
			continue
		}
		left := c.NotAfter.Sub(p.in.Now)
		date := c.NotAfter.Format(time.DateOnly)
		switch {
		case left <= 0 && p.restarts() && !slices.Contains(certificatesUnread, c.Path):
			out = append(out, failure(FindingCertificateExpired, "the certificate %s ended on %s, and what is restarted would not be let in with it: renew it (kubeadm certs renew, or the kubelet's own rotation), then retry", c.Path, date))
		case left <= 0:
			out = append(out, warning(FindingCertificateExpired, "the certificate %s ended on %s; nothing in this plan depends on it: renew it when it is convenient", c.Path, date))
		case left < certificateWarning:
			out = append(out, warning(FindingCertificateExpiring, "the certificate %s ends on %s: renew it before then (kubeadm certs renew, or the kubelet's own rotation)", c.Path, date))
		}
	}
	return out
}
