package drain

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Forecast is what a drain would meet, had it begun now.
type Forecast struct {
	// Blocked is why the drain would end before it evicts anything; nil when it would begin.
	Blocked *Blocked
	// Pods that would have to leave, in the order in which they would go. Empty where Blocked is set.
	Pods []PodForecast
	// Least is the time that the pods need to end, if nothing else holds them: the longest grace of each drain order, added up.
	Least time.Duration
}

// PodForecast is one pod that would have to leave.
type PodForecast struct {
	Namespace, Name string
	UID             types.UID
	Order           int
	Priority        int32
	// PDBs are the names of the budgets that match the pod.
	PDBs []string
	// Leaving pods are only awaited.
	Leaving bool
	// Reason and Message say why it could not go now; "" when it could.
	Reason, Message string
	// Lasting says that no other pod's health would let it go.
	Lasting bool
}

// Forecast answers what Drain would meet, and evicts nothing.
func (d *Drainer) Forecast(ctx context.Context, node string) (Forecast, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRun(d, node)
	defer r.join(ctx)()
	err := r.prepare(ctx)
	var blocked *Blocked
	if errors.As(err, &blocked) {
		return Forecast{Blocked: blocked}, nil
	}
	if err != nil {
		return Forecast{}, err
	}
	return r.forecast(), nil
}

func (r *run) forecast() Forecast {
	var out Forecast
	longest := map[int]time.Duration{}
	for _, e := range r.ordered() {
		budgets := matching(e.pod, r.budgets)
		p := PodForecast{
			Namespace: e.pod.Namespace, Name: e.pod.Name, UID: e.pod.UID,
			Order: e.order, Priority: priority(e.pod), PDBs: namesOf(budgets), Leaving: e.state == stateLeaving,
		}
		if !p.Leaving && guarded(e.pod) {
			if reason, message := r.heldBy(e); message != "" {
				p.Reason, p.Message, p.Lasting = reason, message, len(budgets) == 1 && never(budgets[0])
			}
		}
		if s := e.pod.Spec.TerminationGracePeriodSeconds; s != nil {
			longest[e.order] = max(longest[e.order], time.Duration(*s)*time.Second)
		}
		out.Pods = append(out.Pods, p)
	}
	for _, grace := range longest {
		out.Least += grace
	}
	return out
}
