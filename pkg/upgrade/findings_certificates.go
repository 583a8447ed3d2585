package upgrade

import (
	"slices"
	"time"
)

// certificateWarning is how long before its end a certificate is worth a word.
const certificateWarning = 14 * 24 * time.Hour

// certificatesUnread are not looked at by anything that a plan restarts: nobody
// verifies the certificate that a kubelet has signed for itself, which no kubelet
// ever renews (https://github.com/kubernetes/kubernetes/issues/99418), and the
// super-admin's is for people.
var certificatesUnread = []string{"/var/lib/kubelet/pki/kubelet.crt", "/etc/kubernetes/super-admin.conf"}

// expiringCertificates refuses to restart a component into a certificate that is over.
func expiringCertificates(p *planner) []Finding {
	if p.in.Now.IsZero() {
		return nil
	}
	var out []Finding
	for _, c := range p.in.Facts.Certs {
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
