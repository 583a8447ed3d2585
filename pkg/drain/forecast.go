package drain

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outlook says how a pod, or a whole node, would come through a drain.
type Outlook string

// The outlooks, the best one first.
const (
	// OutlookNow: nothing is in the way.
	OutlookNow Outlook = "Now"
	// OutlookWait: it can succeed, but not at once: other pods have to leave or to become ready first.
	OutlookWait Outlook = "Wait"
	// OutlookNever: time alone does not help; someone has to change a pod, a budget or the policy.
	OutlookNever Outlook = "Never"
)

// Forecast is what a drain of a node would meet now, under the policies it was asked for.
type Forecast struct {
	Node    string  `json:"node"`
	Outlook Outlook `json:"outlook"`
	// Reason of the worst that is in the way, "" when nothing is; Message for people.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// Pods that would have to leave, as they would go.
	Pods []PodForecast `json:"pods"`
	// Least is the time that the pods need to end, if nothing else holds them: the longest grace of each drain order, added up.
	Least metav1.Duration `json:"least,omitzero"`
	// Ignored pods stay where they are.
	Ignored []IgnoredPod `json:"ignored,omitempty"`
	// Budgets of those pods.
	Budgets []BudgetForecast `json:"budgets,omitempty"`
	// Volumes that have to be detached before the host may go down, where it is to.
	Volumes []AttachedVolume `json:"volumes,omitempty"`
	// LoadBalancerDelay passes before the first pod is evicted.
	LoadBalancerDelay *metav1.Duration `json:"loadBalancerDelay,omitempty"`
	// Unknown is what could not be read, and so is not foreseen.
	Unknown []string `json:"unknown,omitempty"`
	// OnlyNode: no other node takes the pods of this one.
	OnlyNode bool `json:"onlyNode,omitempty"`
}

// PodForecast is what would become of a pod that has to leave.
type PodForecast struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Outlook   Outlook `json:"outlook"`
	// Reason and Message of what is in the way.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Warning of what may come after the pod has left.
	Warning string `json:"warning,omitempty"`
	// Help is a command that goes on from there.
	Help string `json:"help,omitempty"`
	// Order of leaving, by its label.
	Order int `json:"order,omitempty"`
	// Awaited: it is leaving already, and is not evicted.
	Awaited bool `json:"awaited,omitempty"`
	// Ready: it takes one of what its budget allows.
	Ready bool `json:"ready"`
	// Budgets that match it, by name.
	Budgets []string `json:"budgets,omitempty"`
}

// String is one line for people.
func (p PodForecast) String() string { return p.Namespace + "/" + p.Name + " " + p.Message }

// IgnoredPod is a pod that a drain leaves alone, and why.
type IgnoredPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Why       string `json:"why"`
}

// Why a pod is left alone.
const (
	IgnoredDaemonSet = "DaemonSet"
	IgnoredMirror    = "Mirror"
	IgnoredFinished  = "Finished"
	IgnoredOwn       = "Own"
)

// BudgetForecast is what a budget lets go of a node's pods.
type BudgetForecast struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Outlook   Outlook `json:"outlook"`
	// Allowed disruptions now.
	Allowed int32 `json:"allowed"`
	// Pods of the node that it holds, by name.
	Pods []string `json:"pods"`
	// Message says what it does to them; Help is a command that goes on from there.
	Message string `json:"message,omitempty"`
	Help    string `json:"help,omitempty"`
	// Unready are the budget's pods, on any node, that are not ready, where that is what it waits for.
	Unready []UnreadyPod `json:"unready,omitempty"`
}

// UnreadyPod is a pod that a budget waits for.
type UnreadyPod struct {
	Name string `json:"name"`
	Node string `json:"node,omitempty"`
	// Why it is not ready.
	Why string `json:"why"`
	// Starting: it may become ready by itself.
	Starting bool `json:"starting,omitempty"`
}

// String is one line for people.
func (p UnreadyPod) String() string {
	if p.Node == "" {
		return p.Name + " (" + p.Why + ")"
	}
	return fmt.Sprintf("%s on %s (%s)", p.Name, p.Node, p.Why)
}

// Count of the pods with this outlook.
func (f Forecast) Count(of Outlook) int {
	n := 0
	for _, p := range f.Pods {
		if p.Outlook == of {
			n++
		}
	}
	return n
}

// Forecast says what Drain would meet on the node now. It evicts and changes nothing.
func (d *Drainer) Forecast(ctx context.Context, node string) (Forecast, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := d.survey(ctx, node)
	if err != nil {
		return Forecast{}, err
	}
	defer s.leave()
	return s.look(ctx)
}

// ForecastRequest is a node and the policies of its drain.
type ForecastRequest struct {
	Node    string
	Options Options
}

// mostForecasts bounds the nodes that are read at a time.
const mostForecasts = 8

// Forecasts are those of many nodes, in the order of the requests. The first error ends them.
func (c *Cluster) Forecasts(ctx context.Context, requests []ForecastRequest) ([]Forecast, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	_, leave := c.budgets.join(ctx, make(chan struct{}, 1)) // one reading of the budgets for all
	defer leave()
	out := make([]Forecast, len(requests))
	places := make(chan struct{}, mostForecasts)
	var all sync.WaitGroup
	for i, req := range requests {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			f, err := c.Drainer(req.Options).Forecast(ctx, req.Node)
			if err != nil {
				stop(err)
			}
			out[i] = f
		})
	}
	all.Wait()
	return out, context.Cause(ctx) //nolint:wrapcheck // it is this package's own
}
