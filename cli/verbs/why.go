package verbs

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/refit-dev/refit/pkg/status"
)

// Standing is how a machine stands with the coordinator.
type Standing string

// The standings.
const (
	// StandingUpToDate has nothing to do.
	StandingUpToDate Standing = "UpToDate"
	// StandingInFlight holds a slot.
	StandingInFlight Standing = "InFlight"
	// StandingPreparing has no plan yet that a gate could judge, or none that may run.
	StandingPreparing Standing = "Preparing"
	// StandingWaiting is held by a gate.
	StandingWaiting Standing = "Waiting"
	// StandingNext passes all gates.
	StandingNext Standing = "Next"
)

// Explanation is why a machine does not go, or that it does.
type Explanation struct {
	Machine   string   `json:"machine"`
	Namespace string   `json:"namespace"`
	Pool      string   `json:"pool,omitempty"`
	Standing  Standing `json:"standing"`
	// Reason and Message of what holds it, or of what it does.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when it began to wait.
	Since *metav1.Time `json:"since,omitempty"`
	// HeldBy is who holds it: objects as kubectl writes them, or people and processes in words.
	HeldBy []string `json:"heldBy,omitempty"`
	// Until is when that ends by itself, where it is known.
	Until *metav1.Time `json:"until,omitempty"`
	// Type are commands that let it go on, or show how far those are whom it waits for; none where only time does.
	Type []string `json:"type,omitempty"`
	// Gates in order, each asked.
	Gates []Judgement `json:"gates"`
	// InFlight are the machines that hold slots in the namespace.
	InFlight []Holder `json:"inFlight,omitempty"`
	// Coordinator is what the coordinator said last of its waiting, where that is something else.
	Coordinator *gates.Verdict `json:"coordinator,omitempty"`
}

// Judgement is the word of one gate.
type Judgement struct {
	Gate    string `json:"gate"`
	Passes  bool   `json:"passes"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Holder is a machine with a slot.
type Holder struct {
	Machine    string              `json:"machine"`
	Pool       string              `json:"pool,omitempty"`
	State      v1alpha1.SlotState  `json:"state"`
	Disruption v1alpha1.Disruption `json:"disruption"`
	Since      metav1.Time         `json:"since"`
}

// ReadAll reads the namespace with budgets, and the nodes of the cluster that has them, as the
// coordinator does before it judges.
func ReadAll(ctx context.Context, cl, nodes client.Reader, namespace string) (*Namespace, error) {
	return read(ctx, cl, nodes, namespace)
}

// Why asks every gate about a machine.
func (n *Namespace) Why(name string) Explanation {
	for _, m := range n.Fleet.Machines {
		recallForecast(m)
	}
	m := n.Fleet.Find(name)
	e := Explanation{Machine: name, Namespace: n.Name, Pool: m.Pool.Name, InFlight: n.holders()}
	for _, g := range gates.All {
		j := Judgement{Gate: g.Name, Passes: true}
		if v := g.Judge(n.Fleet, m); v != nil {
			j.Passes, j.Reason, j.Message = false, v.Reason, v.Text()
		}
		e.Gates = append(e.Gates, j)
	}
	n.stand(&e, m)
	var held gates.Holding
	if e.Standing == StandingWaiting || e.Standing == StandingPreparing {
		held = gates.Hold(n.Fleet, m, gates.Verdict{Reason: e.Reason})
	}
	e.HeldBy = held.By
	if !held.Until.IsZero() {
		e.Until = &metav1.Time{Time: held.Until}
	}
	e.Type = n.toType(e, m, held.Machines)
	return e
}

// recallForecast takes what the coordinator has foreseen from where it says so.
func recallForecast(m *fleet.Machine) {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionForecast)
	if c != nil && c.ObservedGeneration == m.Generation && fleet.NeedsDrain(m) {
		m.Forecast = &fleet.Forecast{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
}

// stand says how the machine stands, and what holds it.
func (n *Namespace) stand(e *Explanation, m *fleet.Machine) {
	now := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	if now != nil {
		e.Reason, e.Message = now.Reason, now.Message
	}
	switch held := slices.IndexFunc(e.Gates, func(j Judgement) bool { return !j.Passes }); {
	case m.Slot != nil:
		e.Standing, e.Since = StandingInFlight, m.Slot.ReservedTime.DeepCopy()
		if taken(m) {
			e.Message = progress(m)
		}
		return
	case now != nil && now.Status == metav1.ConditionTrue && now.ObservedGeneration == m.Generation:
		e.Standing = StandingUpToDate
		e.overridden(m)
		return
	case !order.Ready(m):
		e.Standing = StandingPreparing
		if now != nil {
			e.Since = now.LastTransitionTime.DeepCopy()
		}
		if why := failure(m); why != "" && !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled) {
			e.Message = why
		}
		return
	case held >= 0:
		e.Standing, e.Reason, e.Message = StandingWaiting, e.Gates[held].Reason, e.Gates[held].Message
	default:
		e.Standing, e.Reason, e.Message = StandingNext, "", "no gate holds it: the coordinator gives it a place with its next pass, unless another machine takes that first"
	}
	e.coordinatorsWord(meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWaiting))
}

// overridden says of a machine that is what its own spec wants where that is not what its pool wants.
func (e *Explanation) overridden(m *fleet.Machine) {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionOverridden); c != nil && c.Status == metav1.ConditionTrue {
		e.Reason, e.Message, e.Since = c.Reason, c.Message, c.LastTransitionTime.DeepCopy()
	}
}

// coordinatorsWord takes what the coordinator said last, which also knows what is written nowhere.
func (e *Explanation) coordinatorsWord(waiting *metav1.Condition) {
	if waiting == nil || waiting.Status != metav1.ConditionTrue {
		return
	}
	e.Since = waiting.LastTransitionTime.DeepCopy()
	switch {
	case waiting.Reason == e.Reason && !ofChecks[e.Reason], waiting.Reason == status.ReasonWaitingForSlot:
	case ofChecks[waiting.Reason] && ofChecks[e.Reason]: // the answers are the coordinator's alone
		e.Reason, e.Message = waiting.Reason, waiting.Message
	default:
		e.Coordinator = &gates.Verdict{Reason: waiting.Reason, Message: waiting.Message}
	}
}

// ofChecks are the verdicts of the last gate.
var ofChecks = map[string]bool{gates.ReasonCheckUnknown: true, gates.ReasonCheckFailed: true, gates.ReasonCheckInvalid: true}

func (n *Namespace) holders() []Holder {
	var out []Holder
	for _, m := range n.Fleet.Machines {
		if m.Slot != nil {
			out = append(out, Holder{Machine: m.Name, Pool: m.Pool.Name, State: m.Slot.State, Disruption: m.Slot.Disruption, Since: m.Slot.ReservedTime})
		}
	}
	return out
}
