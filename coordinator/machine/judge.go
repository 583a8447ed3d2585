package machine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// judge words the state of the Machine in conditions and a phase. It looks at what is
// observed and at what the phases have decided, never at an earlier judgement.
func (r *Reconciler) judge(s *scope) {
	st := s.status()
	if s.finished {
		s.view.Slot = nil
	}
	st.Role = s.role()
	r.put(s, v1alpha1.ConditionStalled, stalled(s))
	r.put(s, v1alpha1.ConditionWaiting, r.waiting(s))
	r.put(s, v1alpha1.ConditionReady, ptr(ready(s)))
	r.put(s, v1alpha1.ConditionUpToDate, ptr(upToDate(s)))
	r.tellDrift(s)
	r.put(s, v1alpha1.ConditionHealthy, healthy(s))
	r.put(s, v1alpha1.ConditionOverridden, r.overridden(s))
	r.tellSkew(s)
	r.put(s, v1alpha1.ConditionForecast, r.foreseen(s))
	if s.slot() == nil {
		status.Clear(&st.Conditions, v1alpha1.ConditionDrained)
	}
	st.Phase = status.Phase(s.machine)
}

// put sets the condition, or clears its type when there is nothing to say.
func (r *Reconciler) put(s *scope, kind string, c *metav1.Condition) {
	if c == nil {
		status.Clear(&s.status().Conditions, kind)
		return
	}
	status.Set(&s.status().Conditions, s.machine.Generation, r.Now(), *c)
}

// tellSkew passes on what the rollout controller has found. Before it has looked, as after
// a restart, what was said before stays.
func (r *Reconciler) tellSkew(s *scope) {
	message, judged := r.Board.Skew(s.key)
	switch {
	case !judged:
	case message == "":
		r.put(s, v1alpha1.ConditionSkewViolated, nil)
	default:
		r.put(s, v1alpha1.ConditionSkewViolated, ptr(status.SkewViolated(message)))
	}
}

func ready(s *scope) metav1.Condition {
	node := s.node()
	switch {
	case node == nil && !s.view.NeedsNode() && !s.silent.IsZero():
		return status.ReadyUnknown(status.ReasonNodeUnreachable, silence(s.silent))
	case node == nil && !s.view.NeedsNode():
		return status.Ready()
	case node == nil:
		return status.NotReady(status.ReasonNodeNotFound, fmt.Sprintf(
			"there is no Node %s: a Machine has the name of its Node", s.key.Name))
	case node.Unknown:
		return status.ReadyUnknown(status.ReasonNodeUnreachable, "the cluster has lost sight of the node: "+node.Message)
	case !node.Ready:
		return status.NotReady(status.ReasonNodeNotReady, node.Message)
	case s.standsBy():
		return status.StandingBy()
	case node.ForeignCordon():
		return status.NotReady(status.ReasonCordoned, "the node was cordoned by someone else, and Refit leaves it so")
	case node.Unschedulable:
		return status.NotReady(status.ReasonInOperation, "the node is cordoned for an operation")
	case beingDisrupted(s):
		return status.NotReady(status.ReasonUncordoned, "the node takes pods in the middle of an operation that disturbs them: someone has made it schedulable, and Refit leaves it so")
	}
	return status.Ready()
}

// beingDisrupted says that the host carries out a plan for which its node was emptied.
func beingDisrupted(s *scope) bool {
	slot := s.slot()
	return slot != nil && slot.State == v1alpha1.SlotAccepted && fleet.Disrupts(slot.Disruption)
}

// upToDate names, as the reason for not being so, what happens next or what is in the way.
func upToDate(s *scope) metav1.Condition {
	st := s.status()
	switch {
	case st.Versions == nil:
		return status.UpToDateUnknown()
	case s.wishMet:
		return asWished(s)
	case s.machine.Spec.Availability == v1alpha1.AvailabilityOutOfService && s.slot() == nil:
		return status.NotUpToDate(status.ReasonOutOfService, "the machine is out of service: "+s.difference)
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled); c != nil {
		return status.NotUpToDate(c.Reason, c.Message)
	}
	if s.slot() != nil {
		return inSlot(s)
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionWaiting); c != nil {
		return status.NotUpToDate(gates.Cause(c.Reason, s.machine), c.Message)
	}
	if s.blocked != nil {
		return status.NotUpToDate(s.blocked.Reason, s.blocked.Message)
	}
	return staging(s)
}

// asWished says with it what of the spec nobody carries out.
func asWished(s *scope) metav1.Condition {
	c := status.UpToDate()
	for _, f := range upgrade.Unhandled(s.machine.Spec) {
		c.Message += "; " + f.Message
	}
	return c
}

func inSlot(s *scope) metav1.Condition {
	slot := s.slot()
	switch slot.State {
	case v1alpha1.SlotReserved:
		drained := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionDrained)
		if drained != nil {
			return status.NotUpToDate(drained.Reason, drained.Message)
		}
		return status.NotUpToDate(status.ReasonDraining, "a place is reserved, and the node is being cordoned")
	case v1alpha1.SlotVerifying:
		return status.NotUpToDate(status.ReasonVerifying, cmp.Or(s.health, "the operation has ended, and its outcome is being verified"))
	case v1alpha1.SlotGranted, v1alpha1.SlotAccepted:
	}
	return status.NotUpToDate(status.ReasonApplying, "the host has the grant, and says in status.lastOperation how far it is")
}

func staging(s *scope) metav1.Condition {
	st := s.status()
	if f := st.HostFailure; f != nil {
		return status.NotUpToDate(f.Reason, f.Message)
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStaged); c != nil && c.Status == metav1.ConditionFalse && fleet.CurrentAssignment(s.machine) {
		return status.NotUpToDate(c.Reason, c.Message)
	}
	if st.Assignment != nil && s.node() != nil && !s.node().Ready {
		return status.NotUpToDate(status.ReasonStaging, s.difference+": the host is to plan and stage the next hop, and its node is NotReady")
	}
	if st.Assignment != nil {
		return status.NotUpToDate(status.ReasonStaging, s.difference+": the host plans and stages the next hop")
	}
	return status.NotUpToDate(status.ReasonOutdated, s.difference)
}

// stalled passes on, word for word, what only a person can change.
func stalled(s *scope) *metav1.Condition {
	st := s.status()
	hint := "; " + status.RetryHint(s.key.Name)
	switch {
	case s.wishMet && s.slot() == nil && !upgrade.Failed(s.machine):
		return nil
	case upgrade.Failed(s.machine):
		return ptr(status.Stalled(st.RolloutFailure.Reason, st.RolloutFailure.Message+hint))
	case st.HostFailure != nil && st.HostFailure.Terminal && fleet.CurrentAssignment(s.machine):
		return ptr(status.Stalled(st.HostFailure.Reason, st.HostFailure.Message))
	case s.blocked != nil && s.blocked.Terminal:
		return ptr(status.Stalled(s.blocked.Reason, s.blocked.Message))
	}
	return nil
}

// waiting is the verdict of the gates on a machine that is ready for a place. Where there is
// none for the moment, because the gates have still to look or because it has passed them, it
// stays with what was said last: in a large rollout that moment comes again and again.
func (r *Reconciler) waiting(s *scope) *metav1.Condition {
	if s.slot() != nil || s.wishMet || fleet.FrozenPlan(s.machine) == nil || upgrade.Failed(s.machine) ||
		!meta.IsStatusConditionTrue(s.status().Conditions, v1alpha1.ConditionStaged) {
		r.unjudged.end(s.key)
		return nil
	}
	if v, held := r.Board.Verdict(s.key); held {
		r.unjudged.end(s.key)
		return ptr(status.Waiting(v.Reason, pending(s, v.Message)))
	}
	if left := unjudgedFor - r.unjudged.lasted(s.key, r.Now()); left > 0 {
		s.after(left)
		return meta.FindStatusCondition(s.read.Status.Conditions, v1alpha1.ConditionWaiting).DeepCopy()
	}
	return ptr(status.Waiting(status.ReasonWaitingForSlot, pending(s, "the plan is ready, and a place is being looked for")))
}

// pending adds what waits: what runs, and what is wanted.
func pending(s *scope, message string) string {
	if s.difference == "" {
		return message
	}
	return message + " (" + s.difference + ")"
}

func healthy(s *scope) *metav1.Condition {
	node, slot := s.node(), s.slot()
	switch {
	case node == nil:
		return nil
	case slot != nil && slot.State == v1alpha1.SlotVerifying && slot.UncordonedTime == nil:
		return ptr(status.Unhealthy(status.ReasonNotHealthyYet, cmp.Or(s.health, "the outcome is being verified")))
	case slot != nil && (slot.State == v1alpha1.SlotGranted || slot.State == v1alpha1.SlotAccepted):
		return nil
	case !node.Ready:
		return ptr(status.Unhealthy(status.ReasonNodeNotReady, node.Message))
	}
	if problems := nodeAgrees(s); len(problems) > 0 {
		return ptr(status.Unhealthy(status.ReasonNotHealthyYet, strings.Join(problems, "; ")))
	}
	return ptr(status.Healthy())
}

func (r *Reconciler) overridden(s *scope) *metav1.Condition {
	overrides, looked := r.Board.Overrides(s.key)
	switch {
	case s.view.Pool.Deployment == nil:
		return nil // whatever a deployment found that has let go of it
	case !looked: // as after a restart: what was said before stays
		return meta.FindStatusCondition(s.read.Status.Conditions, v1alpha1.ConditionOverridden).DeepCopy()
	case len(overrides) == 0:
		return nil
	}
	fields := make([]string, 0, len(overrides))
	for _, o := range overrides {
		fields = append(fields, fmt.Sprintf("%s (owned by %s)", o.Field, o.Manager))
	}
	return ptr(status.Overridden(fmt.Sprintf(
		"the MachineDeployment does not write %s; release them with: %s", strings.Join(fields, ", "), fmt.Sprintf("kubectl refit release %s -n %s", s.key.Name, s.key.Namespace))))
}
