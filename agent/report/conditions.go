package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// conditions are the agent's own, in the order of AgentConditions, on top of those reported before.
func conditions(s State, now v1alpha1.MachineStatus) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range s.Base.Conditions {
		if slices.Contains(v1alpha1.AgentConditions, c.Type) {
			out = append(out, c)
		}
	}
	set := func(c *metav1.Condition) {
		if c == nil {
			return
		}
		c.ObservedGeneration, c.LastTransitionTime = s.Generation, metav1.NewTime(s.Now.Truncate(time.Second))
		meta.SetStatusCondition(&out, *c)
	}
	set(staged(s))
	set(held(s.Held, s.Lock))
	if s.Facts != nil {
		set(restartPending(s.Facts))
		set(conflicting(s.Facts))
		set(packagesBroken(s.Facts))
		set(certificates(s.Facts, s.Spec, s.Now))
		set(drifted(s, now))
		setSecurity(&out, set, s)
	}
	slices.SortFunc(out, func(a, b metav1.Condition) int {
		return slices.Index(v1alpha1.AgentConditions, a.Type) - slices.Index(v1alpha1.AgentConditions, b.Type)
	})
	return out
}

func condition(kind string, yes bool, reason, message string) *metav1.Condition {
	status := metav1.ConditionFalse
	if yes {
		status = metav1.ConditionTrue
	}
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: shorten(message, maxMessage)}
}

// staged is about the assignment. Without one nothing is to be staged, and what was said
// of an earlier one, its refusal above all, holds no more.
func staged(s State) *metav1.Condition {
	p := s.Planning
	switch {
	case p == nil && s.Base.Assignment == nil:
		return condition(v1alpha1.ConditionStaged, true, "NothingToStage", "Nothing is assigned to this host")
	case p == nil:
		return nil
	case p.Plan != nil:
		return condition(v1alpha1.ConditionStaged, true, "Staged",
			fmt.Sprintf("Everything that plan %.12s needs is on the host", strings.TrimPrefix(p.Plan.Hash, "sha256:")))
	case p.Refused != nil:
		return condition(v1alpha1.ConditionStaged, false, p.Refused.Reason, p.Refused.Message)
	}
	return condition(v1alpha1.ConditionStaged, false, "Staging", "Planning and staging assignment "+p.AssignmentID)
}

// held names the owner's word before a lock, which passes by itself.
func held(hold *upgrade.HoldFacts, lock *Lock) *metav1.Condition {
	switch {
	case hold == nil && lock == nil:
		return condition(v1alpha1.ConditionHeld, false, "NotHeld", "The host accepts grants")
	case hold == nil:
		return condition(v1alpha1.ConditionHeld, true, upgrade.ReasonPackageLockHeld,
			"No grant is taken: "+lock.Holder.Waited(lock.Since)+"; it is never ended by Refit")
	}
	message := "The host's owner refuses grants with " + hold.Path + "; remove the file to go on"
	if hold.Message != "" {
		message += ": " + hold.Message
	}
	return condition(v1alpha1.ConditionHeld, true, "HoldFile", message)
}

// Reasons of the condition RestartPending.
const (
	reasonRunsWhatIsInstalled = "RunsWhatIsInstalled"
	reasonOldProcessRuns      = "OldProcessRuns"
)

func restartPending(f *upgrade.Facts) *metav1.Condition {
	pending := f.RestartsPending()
	if len(pending) == 0 {
		return condition(v1alpha1.ConditionRestartPending, false, reasonRunsWhatIsInstalled, "What runs is what is installed")
	}
	return condition(v1alpha1.ConditionRestartPending, true, reasonOldProcessRuns, strings.Join(pending, "; "))
}

func conflicting(f *upgrade.Facts) *metav1.Condition {
	if len(f.Conflicts) == 0 {
		return condition(v1alpha1.ConditionConflictingManager, false, "NoneFound", "No other updater was found on the host")
	}
	names := make([]string, 0, len(f.Conflicts))
	for _, c := range f.Conflicts {
		names = append(names, strings.TrimSuffix(c.Name+": "+c.Detail, ": "))
	}
	return condition(v1alpha1.ConditionConflictingManager, true, "OtherUpdater", strings.Join(names, "; "))
}

func packagesBroken(f *upgrade.Facts) *metav1.Condition {
	if message := upgrade.HalfInstalledMessage(f.HalfInstalled()); message != "" {
		return condition(v1alpha1.ConditionPackagesBroken, true, upgrade.ReasonPackageDBBroken, message)
	}
	return condition(v1alpha1.ConditionPackagesBroken, false, "NoneBroken", "No package is half installed")
}

// certificates names the first to expire. Its date, not the days left, is in the
// message: that would be another message, and a write, every day.
func certificates(f *upgrade.Facts, spec v1alpha1.MachineSpec, now time.Time) *metav1.Condition {
	if len(f.Certs) == 0 {
		return nil
	}
	if due := upgrade.RenewalCondition(spec, f.Certs, now); due != nil { // what is done about it comes before what only a person can see to
		return condition(due.Type, true, due.Reason, due.Message)
	}
	lapsing := f.Lapsing(now.Add(upgrade.CertificateWarning))
	if len(lapsing) == 0 {
		return condition(v1alpha1.ConditionCertificatesExpiring, false, "Valid", "All certificates are valid for more than 30 days")
	}
	first := lapsing[0]
	date, renewal := first.NotAfter.UTC().Format(time.RFC3339), first.Renewal()
	if spec.Paused {
		renewal = "the machine is paused, so no upgrade renews it; " + renewal
	}
	if !first.NotAfter.After(now) {
		return condition(v1alpha1.ConditionCertificatesExpiring, true, "Expired", fmt.Sprintf("%s expired at %s; %s", first.Path, date, renewal))
	}
	return condition(v1alpha1.ConditionCertificatesExpiring, true, "ExpiresSoon", fmt.Sprintf("%s expires at %s; %s", first.Path, date, renewal))
}
