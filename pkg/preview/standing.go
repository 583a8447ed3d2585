package preview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// working are the phases in which something goes on at the machine.
var working = []v1alpha1.Phase{
	v1alpha1.PhaseDraining, v1alpha1.PhaseApplying, v1alpha1.PhaseRebooting, v1alpha1.PhaseVerifying, v1alpha1.PhaseSoaking, v1alpha1.PhaseRollingBack,
}

// goingOn says what goes on at the machine now, by its status.
func goingOn(m *v1alpha1.Machine) (upgrade.Finding, bool) {
	phase := status.Phase(m)
	if !slices.Contains(working, phase) {
		return upgrade.Finding{}, false
	}
	what := ""
	if op := m.Status.LastOperation; op != nil && op.State == v1alpha1.OperationProcessing {
		what = status.Progress(op)
	} else if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate); c != nil && c.Status != metav1.ConditionTrue {
		what = c.Message
	}
	return upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: FindingInOperation,
		Message: string(phase) + ": " + cmp.Or(what, "the host has the grant") + "; what is shown beside it is planned from the middle of that, and is looked at anew when it has ended"}, true
}

// concludeWork turns the plan of a machine that is worked on into what goes on there. What
// may pass by itself, seen in the middle of the work, is no refusal.
func (h *host) concludeWork(p *MachinePlan) {
	finding, working := goingOn(&h.Machine)
	if !working {
		return
	}
	p.Findings = append(p.Findings, finding)
	if p.Refusal != nil && p.Refusal.Terminal {
		return
	}
	if p.Refusal != nil {
		p.Findings = append(p.Findings, upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: p.Refusal.Reason, Message: p.Refusal.Message})
	}
	p.State, p.Refusal = StateInOperation, nil
}

// standing is what is to be said of a host whether anything is planned on it or not.
func (h *host) standing(p *MachinePlan, now time.Time) {
	p.Findings = append(p.Findings, untold(p.Findings, upgrade.Unhandled(h.Machine.Spec))...)
	p.Findings = append(p.Findings, h.hold(p.Findings)...)
	p.Findings = append(p.Findings, h.halfInstalled(p)...)
	if len(p.Hops) == 0 || h.Machine.Spec.Paused || h.Paused {
		p.Findings = append(p.Findings, unrefused(p.Refusal, h.lapsing(p.Findings, now))...)
	}
}

// halfInstalled is what a broken transaction left behind, where no refusal has said so: the
// host may have nothing to do now, and could not be worked on.
func (h *host) halfInstalled(p *MachinePlan) []upgrade.Finding {
	broken := h.state().PackagesBroken
	if broken == "" || p.Refusal != nil && p.Refusal.Reason == upgrade.ReasonPackageDBBroken {
		return nil
	}
	return untold(p.Findings, []upgrade.Finding{{Severity: upgrade.SeverityWarning, Reason: upgrade.ReasonPackageDBBroken, Message: broken}})
}

// hold is the veto of the host's owner, or another process at work on its packages.
func (h *host) hold(told []upgrade.Finding) []upgrade.Finding {
	if hold := h.facts.Hold; hold != nil {
		return untold(told, []upgrade.Finding{upgrade.HoldFinding(*hold)})
	}
	c := meta.FindStatusCondition(h.Machine.Status.Conditions, v1alpha1.ConditionHeld)
	switch {
	case !h.reported || c == nil || c.Status != metav1.ConditionTrue:
		return nil
	case c.Reason == upgrade.ReasonPackageLockHeld:
		return untold(told, []upgrade.Finding{{Severity: upgrade.SeverityInfo, Reason: c.Reason, Message: c.Message}})
	}
	return untold(told, []upgrade.Finding{{Severity: upgrade.SeverityWarning, Reason: upgrade.FindingHeldByOwner, Message: c.Message}})
}

// lapsing are the certificates that end while nothing is done to the host.
func (h *host) lapsing(told []upgrade.Finding, now time.Time) []upgrade.Finding {
	var out []upgrade.Finding
	c := meta.FindStatusCondition(h.Machine.Status.Conditions, v1alpha1.ConditionCertificatesExpiring)
	switch {
	case !h.reported && !now.IsZero():
		out = h.facts.LapsingFindings(now)
	case h.reported && c != nil && c.Status == metav1.ConditionTrue:
		out = []upgrade.Finding{{Severity: upgrade.SeverityWarning, Reason: upgrade.FindingCertificateExpiring, Message: c.Message}}
	}
	why := "nothing is done to this host now, so no upgrade renews it: "
	if h.Machine.Spec.Paused || h.Paused {
		why = "the machine is paused, so no upgrade renews it: "
	}
	for i := range out {
		out[i].Message = why + strings.TrimPrefix(out[i].Message, why)
	}
	return out
}

// unrefused leaves what the refusal has not said already.
func unrefused(refusal *upgrade.Blocked, findings []upgrade.Finding) []upgrade.Finding {
	if refusal == nil {
		return findings
	}
	return slices.DeleteFunc(findings, func(f upgrade.Finding) bool {
		_, what, _ := strings.Cut(f.Message, "the certificate ")
		what, _, _ = strings.Cut(what, ";")
		return what != "" && strings.Contains(refusal.Message, "the certificate "+what)
	})
}

// untold leaves what has not been told under its reason before.
func untold(told, findings []upgrade.Finding) []upgrade.Finding {
	return slices.DeleteFunc(findings, func(f upgrade.Finding) bool {
		return slices.ContainsFunc(told, func(t upgrade.Finding) bool { return t.Reason == f.Reason })
	})
}
