package machinedeployment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusManager owns a MachineDeployment's status.
const statusManager = "refit-coordinator"

// Reasons of a MachineDeployment's conditions.
const (
	ReasonComplete         = "Complete"
	ReasonRollingOut       = "RollingOut"
	ReasonTemplateRefused  = fleet.ReasonTemplateRefused
	ReasonNoMachines       = fleet.ReasonNoMachines
	ReasonAborted          = "Aborted"
	ReasonEnoughMachines   = "EnoughMachines"
	ReasonTooFewMachines   = "TooFewMachines"
	ReasonNoConflict       = "NoConflict"
	ReasonMachineConflict  = gates.ReasonDeploymentConflict
	ReasonPaused           = gates.ReasonPaused
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonFailureThreshold = gates.ReasonFailureThreshold
	ReasonWindowInvalid    = gates.ReasonWindowInvalid
	ReasonCheckInvalid     = gates.ReasonCheckInvalid
)

// judge counts the machines and words how the rollout goes.
func (r *Reconciler) judge(s *scope) {
	st, generation := &s.deployment.Status, s.deployment.Generation
	if !s.unwritten {
		st.ObservedGeneration = generation
	}
	if sel, err := metav1.LabelSelectorAsSelector(&s.deployment.Spec.Selector); err == nil {
		st.Selector = sel.String()
	}
	count(st, s.pool)
	st.Paused = paused(s)
	r.noteProgress(s)
	status.Set(&st.Conditions, generation, r.Now(), conflictCondition(s))
	status.Set(&st.Conditions, generation, r.Now(), available(s.pool, st))
	if status.Set(&st.Conditions, generation, r.Now(), r.progressing(s)) {
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionProgressing)
		r.Events.Eventf(s.deployment, nil, eventKind(c), c.Reason, "Rollout", "%s", c.Message)
	}
}

func eventKind(c *metav1.Condition) string {
	if c.Status == metav1.ConditionFalse {
		return "Warning"
	}
	return "Normal"
}

func count(st *v1alpha1.MachineDeploymentStatus, p *fleet.Pool) {
	st.Machines, st.UpToDate, st.Ready, st.InFlight, st.Failed, st.Replicas = 0, 0, 0, 0, 0, 0
	for _, m := range p.Machines {
		st.Machines++
		add := func(n *int32, is bool) {
			if is {
				*n++
			}
		}
		add(&st.UpToDate, current(m, v1alpha1.ConditionUpToDate))
		add(&st.Ready, meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady))
		add(&st.InFlight, m.Slot != nil)
		add(&st.Failed, upgrade.Failed(m.Machine))
		add(&st.Replicas, m.Serves())
	}
}

// current counts a condition only when it was judged on the spec as it is now.
func current(m *fleet.Machine, kind string) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
}

func conflictOf(f *fleet.Fleet, name string) string {
	var others, machines []string
	for _, m := range f.Machines {
		if len(m.Claims) < 2 || !slices.Contains(m.Claims, name) {
			continue
		}
		machines = append(machines, m.Name)
		for _, c := range m.Claims {
			if c != name && !slices.Contains(others, c) {
				others = append(others, c)
			}
		}
	}
	if len(machines) == 0 {
		return ""
	}
	const most = 5
	more := ""
	if len(machines) > most {
		more = fmt.Sprintf(" and %d more", len(machines)-most)
		machines = machines[:most]
	}
	return fmt.Sprintf("MachineDeployment %s selects the same machines (%s%s): change a selector or the machines' labels so that each machine has one; until then neither is rolled out",
		strings.Join(others, ", "), strings.Join(machines, ", "), more)
}

func conflictCondition(s *scope) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionConflict, Status: metav1.ConditionFalse, Reason: ReasonNoConflict, Message: "no other MachineDeployment selects these machines"}
	if s.conflict != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonMachineConflict, s.conflict
	}
	return c
}

func available(p *fleet.Pool, st *v1alpha1.MachineDeploymentStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: ReasonEnoughMachines}
	need := p.Size() - p.MaxUnavailable()
	if int(st.Replicas) < need {
		c.Status, c.Reason = metav1.ConditionFalse, ReasonTooFewMachines
	}
	c.Message = fmt.Sprintf("%d of %s in service, at least %d should be", st.Replicas, status.Count(p.Size(), "machine"), max(need, 0))
	return c
}

// progressing names what stands in the way first, then how far the rollout is.
func (r *Reconciler) progressing(s *scope) metav1.Condition {
	st := &s.deployment.Status
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	no := func(reason, message string) metav1.Condition {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, message
		return c
	}
	invalid, halted := r.invalid(s.pool), gates.Halted(s.pool)
	s.lookAtFailures(r.Now())
	switch stalled, reason := stalledMachine(s.pool); {
	case s.conflict != "":
		return no(ReasonMachineConflict, s.conflict)
	case s.refused != "":
		return no(ReasonTemplateRefused, s.refused)
	case invalid != nil:
		return no(invalid.Reason, invalid.Message)
	case st.Machines == 0 && fleet.HadMachines(s.read):
		return no(ReasonNoMachines, lostMessage)
	case halted != nil && st.UpToDate < st.Machines:
		return no(halted.Reason, joined(halted.Message, stalled))
	case stalled != "":
		return no(reason, stalled)
	case s.deployment.Spec.Paused:
		c.Status = metav1.ConditionUnknown
		c.Reason, c.Message = pausedText(s.deployment)
	case st.Machines == 0:
		c.Reason, c.Message = ReasonNoMachines, "no Machine matches the selector"
	case st.UpToDate == st.Machines:
		c.Reason, c.Message = ReasonComplete, complete(st.Machines)
	default:
		if overdue := r.overdue(s); overdue != "" {
			return no(ReasonDeadlineExceeded, overdue+": "+r.rollingOut(s))
		}
		c.Reason, c.Message = ReasonRollingOut, r.rollingOut(s)
	}
	return c
}

// A pool that has lost its machines is not a pool that is done.
const lostMessage = "no Machine matches the selector any more, so the rollout is paused, also for the machines that have left: " +
	"correct the selector or the machines' labels, and it goes on by itself"

func pausedText(d *v1alpha1.MachineDeployment) (reason, message string) {
	if why, aborted := d.Annotations[v1alpha1.AnnotationAbort]; aborted {
		return ReasonAborted, fmt.Sprintf("aborted (%s): what hosts had accepted finishes; go on with: kubectl refit resume %s -n %s", why, d.Name, d.Namespace)
	}
	return ReasonPaused, fmt.Sprintf("paused: go on with: kubectl refit resume %s -n %s", d.Name, d.Namespace)
}

// lookAtFailures asks for a pass when time alone makes another failure count.
func (s *scope) lookAtFailures(now time.Time) {
	if at := s.pool.NextFailure(); !at.IsZero() && (s.requeue == 0 || at.Sub(now) < s.requeue) {
		s.requeue = at.Sub(now)
	}
}

// joined adds what one machine says.
func joined(message, stalled string) string {
	if stalled == "" {
		return message
	}
	return message + "; " + stalled
}

// invalid says what of the strategy can never be carried out as it is written.
func (r *Reconciler) invalid(p *fleet.Pool) *gates.Verdict {
	if v := gates.Invalid(p); v != nil {
		return v
	}
	if err := r.compiler.Invalid(p.Rolling().Checks); err != nil {
		return &gates.Verdict{Reason: ReasonCheckInvalid, Message: err.Error()}
	}
	return nil
}

func complete(machines int32) string {
	if machines == 1 {
		return "the machine is up to date"
	}
	return fmt.Sprintf("all %d machines are up to date", machines)
}

func stalledMachine(p *fleet.Pool) (message, reason string) {
	for _, m := range p.Machines {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStalled)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation {
			return fmt.Sprintf("machine %s: %s", m.Name, c.Message), c.Reason
		}
	}
	return "", ""
}

func (r *Reconciler) rollingOut(s *scope) string {
	st := &s.deployment.Status
	parts := []string{fmt.Sprintf("%d of %s up to date", st.UpToDate, status.Count(st.Machines, "machine"))}
	for _, m := range s.pool.Machines {
		if m.Slot != nil {
			parts = append(parts, fmt.Sprintf("%s is %s", m.Name, m.Status.Phase))
		}
	}
	for _, m := range s.pool.Machines {
		if v, held := r.Board.Verdict(types.NamespacedName{Namespace: m.Namespace, Name: m.Name}); held && m.Slot == nil {
			parts = append(parts, fmt.Sprintf("%s waits (%s)", m.Name, gates.Cause(v.Reason, m.Machine)))
			break
		}
	}
	return strings.Join(parts, "; ")
}

func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	if equality.Semantic.DeepEqual(s.read.Status, s.deployment.Status) {
		return nil
	}
	data, err := json.Marshal(s.deployment.Status)
	if err != nil {
		return fmt.Errorf("encoding the status of MachineDeployment %s: %w", s.read.Name, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("encoding the status of MachineDeployment %s: %w", s.read.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MachineDeployment"))
	u.SetNamespace(s.read.Namespace)
	u.SetName(s.read.Name)
	u.SetUID(s.read.UID)
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(statusManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing the status of MachineDeployment %s: %w", s.read.Name, err)
	}
	return nil
}
