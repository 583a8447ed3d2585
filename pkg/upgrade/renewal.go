package upgrade

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// ReasonRenewalDue of the condition CertificatesExpiring: a certificate ends within the
// time before which spec wants it renewed. The host judges it, since it has the clock.
const ReasonRenewalDue = "RenewalDue"

// controlPlanePods are the static pods of a control plane, in the order in which they are restarted.
var controlPlanePods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// ControlPlanePods are the static pods that a plan may restart.
func ControlPlanePods() []string { return slices.Clone(controlPlanePods) }

// RenewalDue are the certificates that kubeadm is to renew, by spec and a clock, first ending first.
func RenewalDue(spec v1alpha1.MachineSpec, certs []CertFacts, now time.Time) []CertFacts {
	before, wished := renewBefore(spec)
	if !wished || now.IsZero() {
		return nil
	}
	var due []CertFacts
	for _, c := range certs {
		managed := c.ManagedBy == ManagedByKubeadm || c.ManagedBy == ManagedByExternal
		if managed && c.NotAfter.Sub(now) < before {
			due = append(due, c)
		}
	}
	slices.SortFunc(due, func(a, b CertFacts) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.Path, b.Path))
	})
	return due
}

func renewBefore(spec v1alpha1.MachineSpec) (time.Duration, bool) {
	if spec.Kubeadm == nil || spec.Kubeadm.RenewCertificatesBefore == nil || !slices.Contains(spec.Roles, v1alpha1.RoleControlPlane) {
		return 0, false
	}
	return spec.Kubeadm.RenewCertificatesBefore.Duration, true
}

// RenewalCondition is what a host reports of certificates that are due; nil for none.
func RenewalCondition(spec v1alpha1.MachineSpec, certs []CertFacts, now time.Time) *metav1.Condition {
	due := RenewalDue(spec, certs, now)
	if len(due) == 0 {
		return nil
	}
	first := due[0]
	return &metav1.Condition{
		Type: v1alpha1.ConditionCertificatesExpiring, Status: metav1.ConditionTrue, Reason: ReasonRenewalDue,
		Message: fmt.Sprintf("spec wants certificates renewed %s before they end: %d are due, the first is %s, which ends at %s",
			spec.Kubeadm.RenewCertificatesBefore.Duration, len(due), first.Path, first.NotAfter.UTC().Format(time.RFC3339)),
	}
}

// RenewalReported is what a Machine's host says of certificates that are due; "" for nothing.
func RenewalReported(spec v1alpha1.MachineSpec, status v1alpha1.MachineStatus) string {
	if _, wished := renewBefore(spec); !wished {
		return ""
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCertificatesExpiring)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != ReasonRenewalDue {
		return ""
	}
	return firstOf(c.Message, "certificates of kubeadm are due for renewal")
}

// RenewsOnly says that a target asks for the renewal of certificates, and for nothing else.
func RenewsOnly(t v1alpha1.Target) bool {
	rest := t
	rest.Certificates = false
	return t.Certificates && Arrived(rest)
}

// checkRenewal finds what is due, and refuses what kubeadm could not renew.
func (p *planner) checkRenewal() error {
	before, wished := renewBefore(p.in.Spec)
	if !wished || !p.in.Assignment.Target.Certificates || p.want.controlPlaneChanges {
		return nil // kubeadm upgrade renews the certificates, too
	}
	due := RenewalDue(p.in.Spec, p.in.Facts.Certs, p.in.Now)
	why := p.probeFailed("certificates")
	switch {
	case len(due) == 0 && p.in.Estimate && len(p.in.Facts.Certs) == 0: // the host has said that some are
	case len(due) == 0 && why != "":
		return wait(FindingFactUnknown, "the certificates of this host could not all be read (%s), so it is not known whether one is to be renewed: see that they can be read; the host is looked at again by itself", why)
	case len(due) == 0:
		return nil
	}
	if at := slices.IndexFunc(due, func(c CertFacts) bool { return c.ManagedBy == ManagedByExternal }); at >= 0 {
		return refuse(ReasonCertificatesExternal, "the certificate %s ends on %s, and kubeadm cannot renew it: the key of its CA is not on this host (an external CA); have it renewed by whoever holds the key, or remove spec.kubeadm.renewCertificatesBefore", due[at].Path, due[at].NotAfter.Format(time.DateOnly))
	}
	if p.in.Facts.Kubeadm == nil {
		return refuse(ReasonKubeadmMissing, "certificates of this host are due for renewal, and it has no kubeadm to renew them: install it at the version that runs, or remove spec.kubeadm.renewCertificatesBefore")
	}
	p.want.renewal = &Renewal{Before: before.String(), Due: due}
	return nil
}

func (p *planner) renews() bool { return p.want.renewal != nil }

// certificates renews what is due, and has every component of the control plane load it.
func (p *planner) certificates() error {
	if !p.renews() {
		return nil
	}
	p.add(Step{Kind: StepKubeadmRenewCertificates, Renewal: p.want.renewal})
	for _, pod := range controlPlanePods {
		if p.runsPod(pod) {
			p.add(Step{Kind: StepRestartStaticPod, Pod: pod})
		}
	}
	p.disturb(v1alpha1.DisruptionRestart)
	return nil
}

// runsPod goes by the manifests; without them, in an estimate, all but an etcd elsewhere are there.
func (p *planner) runsPod(pod string) bool {
	c := p.in.Facts.Control
	if c == nil {
		return false
	}
	if len(c.Manifests) == 0 && p.in.Estimate {
		return pod != "etcd" || c.Etcd != ""
	}
	_, ok := c.Manifests[pod]
	return ok
}

// operationType of a plan that only renews says so, whoever assigned it.
func (p *planner) operationType() v1alpha1.OperationType {
	w := p.want
	if p.renews() && !w.kubeletChanges && !w.controlPlaneChanges && !w.runtimeChanges && !w.configChanges && !p.osPending() && !p.securityPending() && !p.rebootPending() && p.in.Assignment.Type == v1alpha1.OperationUpgrade {
		return v1alpha1.OperationRenewCertificates
	}
	return p.in.Assignment.Type
}

func (r Renewal) object() string {
	if len(r.Due) == 0 {
		return "those that are due"
	}
	first := r.Due[0]
	return fmt.Sprintf("%d due, first %s on %s", len(r.Due), path.Base(first.Path), first.NotAfter.UTC().Format(time.DateOnly))
}
