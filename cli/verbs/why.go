package verbs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
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
	// Type are commands that would let it go on; none where only time does.
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

// ReadAll reads the namespace with nodes and budgets, as the coordinator does before it judges.
func ReadAll(ctx context.Context, cl client.Reader, namespace string) (*Namespace, error) {
	return read(ctx, cl, namespace, true)
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
	e.Type = n.toType(e, m)
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
	waiting := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWaiting)
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
		return
	case !order.Ready(m):
		e.Standing = StandingPreparing
		if why := failure(m); why != "" && !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled) {
			e.Message = why
		}
		return
	case held >= 0:
		e.Standing, e.Reason, e.Message = StandingWaiting, e.Gates[held].Reason, e.Gates[held].Message
	default:
		e.Standing, e.Reason, e.Message = StandingNext, "", "no gate holds it: the coordinator gives it a place with its next pass, unless another machine takes that first"
	}
	e.coordinatorsWord(waiting)
}

// coordinatorsWord takes what the coordinator said last, which also knows what is written nowhere.
func (e *Explanation) coordinatorsWord(waiting *metav1.Condition) {
	if waiting == nil || waiting.Status != metav1.ConditionTrue {
		return
	}
	e.Since = waiting.LastTransitionTime.DeepCopy()
	if waiting.Reason == e.Reason || waiting.Reason == status.ReasonWaitingForSlot {
		return
	}
	e.Coordinator = &gates.Verdict{Reason: waiting.Reason, Message: waiting.Message}
}

func (n *Namespace) holders() []Holder {
	var out []Holder
	for _, m := range n.Fleet.Machines {
		if m.Slot != nil {
			out = append(out, Holder{Machine: m.Name, Pool: m.Pool.Name, State: m.Slot.State, Disruption: m.Slot.Disruption, Since: m.Slot.ReservedTime})
		}
	}
	return out
}

// toType are the commands that end what holds the machine, where a command does.
func (n *Namespace) toType(e Explanation, m *fleet.Machine) []string {
	in := " -n " + n.Name
	if e.Standing == StandingPreparing && failure(m) != "" {
		return []string{"kubectl refit retry " + m.Name + in}
	}
	if e.Standing != StandingWaiting {
		return nil
	}
	switch e.Reason {
	case gates.ReasonStopped:
		return []string{"kubectl refit resume --all" + in}
	case gates.ReasonPaused:
		if m.Spec.Paused {
			return []string{"kubectl refit resume machine/" + m.Name + in}
		}
		return []string{"kubectl refit resume " + m.Pool.Name + in}
	case gates.ReasonForeignCordon:
		return []string{"kubectl uncordon " + m.Name}
	case gates.ReasonRetryLater:
		return []string{"kubectl refit retry " + m.Name + in}
	case gates.ReasonFailureThreshold:
		return []string{"kubectl refit retry machinedeployment/" + m.Pool.Name + in}
	case gates.ReasonDrainImpossible:
		return []string{"kubectl refit forecast machine/" + m.Name + in}
	case "AwaitingNext":
		return []string{"kubectl refit next " + m.Name + in}
	case gates.ReasonDeploymentConflict:
		var out []string
		for _, pool := range m.Claims {
			out = append(out, "kubectl edit machinedeployment "+pool+in)
		}
		return out
	}
	return nil
}

// PrintExplanation writes it for people.
func PrintExplanation(out io.Writer, e Explanation, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	pool := "no pool"
	if e.Pool != "" {
		pool = "pool " + e.Pool
	}
	since := ""
	if e.Since != nil {
		since = ", since " + duration.HumanDuration(now.Sub(e.Since.Time))
	}
	fmt.Fprintf(w, "machine %s (%s): %s%s\n", e.Machine, pool, e.Standing, since)
	if e.Message != "" {
		text := e.Message
		if e.Reason != "" {
			text = e.Reason + ": " + text
		}
		fmt.Fprintln(w, breaks.Replace(text))
	}
	for _, command := range e.Type {
		fmt.Fprintln(w, "  "+command)
	}
	if e.Coordinator != nil {
		fmt.Fprintf(w, "the coordinator's last word is %s: %s\n", e.Coordinator.Reason, breaks.Replace(e.Coordinator.Message))
	}
	if err := flush(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	row(w, "GATE", "VERDICT", "REASON", "MESSAGE")
	for _, j := range e.Gates {
		verdict := "pass"
		if !j.Passes {
			verdict = "veto"
		}
		row(w, j.Gate, verdict, j.Reason, j.Message)
	}
	if len(e.InFlight) > 0 {
		fmt.Fprintln(w)
		row(w, "IN-FLIGHT", "POOL", "STATE", "DISRUPTION", "SINCE")
		for _, h := range e.InFlight {
			row(w, h.Machine, h.Pool, h.State, h.Disruption, duration.HumanDuration(now.Sub(h.Since.Time)))
		}
	}
	return flush(w)
}
