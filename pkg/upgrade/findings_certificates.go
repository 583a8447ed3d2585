package upgrade

import "time"

// certificateWarning is how long before its end a certificate is worth a word.
const certificateWarning = 14 * 24 * time.Hour

// expiringCertificates refuses to restart a component into a certificate that is over.
func expiringCertificates(p *planner) []Finding {
	if p.in.Now.IsZero() {
		return nil
	}
	var out []Finding
	for _, c := range p.in.Facts.Certs {
		left := c.NotAfter.Sub(p.in.Now)
		switch {
		case left <= 0:
			out = append(out, failure(FindingCertificateExpired, "the certificate %s ended on %s, and what is restarted would not be let in with it: renew it (kubeadm certs renew, or the kubelet's own rotation), then retry", c.Path, c.NotAfter.Format(time.DateOnly)))
		case left < certificateWarning:
			out = append(out, warning(FindingCertificateExpiring, "the certificate %s ends on %s", c.Path, c.NotAfter.Format(time.DateOnly)))
		}
	}
	return out
}
