package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drainer plays the drains: pods leave as soon as the forecast says that they may go now,
// which is the judgement of the real drain, and take their time to end.
type drainer struct {
	e    *Engine
	runs map[string]*drainRun // by grant
}

type drainRun struct {
	req       drains.Request
	started   time.Time
	notBefore time.Time
	state     drains.State
	evicted   int
	deleted   int
	hopeless  time.Time // since when nothing helps; zero while there is hope
}

// Ensure implements machine.Drainer.
func (d *drainer) Ensure(req drains.Request) drains.State {
	if known := d.runs[req.GrantID]; known != nil {
		return known.state
	}
	run := &drainRun{req: req, started: d.e.now, notBefore: d.e.now.Add(req.Options.LoadBalancerDelay)}
	run.state.Message = "pods are being evicted"
	d.runs[req.GrantID] = run
	f, err := d.e.foresee(req.Node, req.Options)
	if err != nil {
		d.end(run, err)
		return run.state
	}
	d.e.countDrain(req.Machine.Name)
	d.e.note(ActionDrain, req.Machine.Name, string(f.Outlook), f.Message)
	if len(f.Pods) == 0 {
		m := d.e.world.machines[req.Machine.Name]
		d.e.after(d.e.durations.of(phaseDrain, m), func() { d.end(run, nil) })
		return run.state
	}
	if blocked := refused(f); blocked != nil {
		d.end(run, blocked)
		return run.state
	}
	d.e.after(req.Options.Timeout, func() { d.step(run) })
	d.e.after(max(req.Options.LoadBalancerDelay, 0), func() { d.step(run) })
	return run.state
}

// refused is what a policy keeps on the node: a drain ends for it before any pod is evicted.
func refused(f drain.Forecast) error {
	if f.Outlook != drain.OutlookNever || f.Reason == drain.ReasonEvictionBlocked || f.Reason == drain.ReasonPDBOverlap {
		return nil
	}
	return &drain.Blocked{Reason: f.Reason, Message: f.Message, Permanent: true}
}

// Forget implements machine.Drainer.
func (d *drainer) Forget(grantID string) { delete(d.runs, grantID) }

func (d *drainer) known(run *drainRun) bool {
	return d.runs[run.req.GrantID] == run && !run.state.Done
}

// step evicts what may go now, and ends the drain when it is over.
func (d *drainer) step(run *drainRun) {
	if !d.known(run) || d.e.now.Before(run.notBefore) {
		return
	}
	f, err := d.e.foresee(run.req.Node, run.req.Options)
	switch {
	case err != nil:
		d.end(run, err)
	case len(f.Pods) == 0:
		d.end(run, nil)
	case !d.e.now.Before(run.started.Add(run.req.Options.Timeout)):
		d.expire(run, f)
	case d.hopeless(run, f):
		d.end(run, &drain.Blocked{Reason: f.Reason, Message: f.Message, Permanent: true})
	default:
		d.evict(run, f)
	}
}

// hopeless says that nothing but a person could have helped for long enough.
func (d *drainer) hopeless(run *drainRun, f drain.Forecast) bool {
	if f.Outlook != drain.OutlookNever || run.req.Options.OnTimeout != drain.ActionFail {
		run.hopeless = time.Time{}
		return false
	}
	if run.hopeless.IsZero() {
		run.hopeless = d.e.now
		d.e.after(drain.Hopeless(), func() { d.step(run) })
		return false
	}
	return !d.e.now.Before(run.hopeless.Add(drain.Hopeless()))
}

// expire does at the timeout what the policy says.
func (d *drainer) expire(run *drainRun, f drain.Forecast) {
	switch run.req.Options.OnTimeout {
	case drain.ActionDelete:
		run.deleted += len(f.Pods)
		for _, p := range f.Pods {
			d.e.gone(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, run.req.Machine.Name)
		}
		d.end(run, nil)
	case drain.ActionProceed:
		run.state.Warning = fmt.Sprintf("the policy goes on with %s left on the node", status.Count(len(f.Pods), "pod"))
		d.end(run, nil)
	default:
		d.end(run, &drain.Blocked{Reason: f.Reason, Message: f.Message, Permanent: f.Outlook == drain.OutlookNever})
	}
}

func (d *drainer) evict(run *drainRun, f drain.Forecast) {
	for _, p := range f.Pods {
		key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		pod := d.e.world.pods[key]
		if p.Outlook != drain.OutlookNow || pod == nil || pod.DeletionTimestamp != nil {
			continue
		}
		run.evicted++
		d.e.evictions++
		next := pod.DeepCopy()
		now := metav1.NewTime(d.e.now)
		next.DeletionTimestamp = &now
		d.e.world.putPod(next)
		d.e.note(ActionEvict, run.req.Machine.Name, "", fmt.Sprintf("pod %s", key))
		machine := d.e.world.machines[run.req.Machine.Name]
		took := d.e.durations.of(phaseDrain, machine)
		d.e.after(took, func() { d.e.gone(key, run.req.Machine.Name) })
	}
	run.state.Message = fmt.Sprintf("%s left", status.Count(len(f.Pods), "pod"))
}

func (d *drainer) end(run *drainRun, err error) {
	if !d.known(run) {
		return
	}
	run.state.Done, run.state.Err = true, err
	run.state.Message = "no pod had to leave"
	if run.evicted > 0 {
		run.state.Message = status.Count(run.evicted, "pod") + " evicted"
	}
	if run.deleted > 0 {
		run.state.Message += fmt.Sprintf(", %d deleted past their budget by policy", run.deleted)
	}
	if err == nil {
		d.e.note(ActionDrained, run.req.Machine.Name, "", run.state.Message)
	}
	d.e.wake(run.req.Machine.Name)
}

// stepAll lets every drain look again, since pods or budgets have changed.
func (d *drainer) stepAll() {
	for _, slot := range d.e.world.slots() {
		if run := d.runs[slot.GrantID]; run != nil {
			d.step(run)
		}
	}
}

// foresee is what a drain of the node would meet now.
func (e *Engine) foresee(node string, opts drain.Options) (drain.Forecast, error) {
	n := e.world.nodes[node]
	if n == nil {
		return drain.Forecast{}, notFound("nodes", node)
	}
	namespaces := map[string]bool{}
	pods := e.world.podsOf(node)
	for _, p := range pods {
		namespaces[p.Namespace] = true
	}
	return drain.Scene{
		Node: n, Pods: pods, Budgets: e.world.budgetsIn(namespaces), Members: e.world.members, Now: e.now, Options: opts,
	}.Forecast(context.Background())
}

// gone is the end of a pod. What controls it makes another one, which goes where there is a place.
func (e *Engine) gone(key types.NamespacedName, machine string) {
	pod := e.world.pods[key]
	if pod == nil {
		return
	}
	from := e.world.nodes[pod.Spec.NodeName]
	e.world.removePod(key)
	if metav1.GetControllerOf(pod) == nil {
		return
	}
	e.replaced++
	next := replacement(pod, e.replaced)
	e.world.putPod(next)
	e.schedule(keyOfPod(next), from, machine)
}

// schedule finds a node for a pod that waits for one; where there is none it waits on.
func (e *Engine) schedule(key types.NamespacedName, from *corev1.Node, machine string) {
	pod := e.world.pods[key]
	if pod == nil || pod.Spec.NodeName != "" {
		return
	}
	node := e.world.place(from)
	if node == "" {
		e.pending[key] = func() { e.schedule(key, from, machine) }
		return
	}
	delete(e.pending, key)
	next := pod.DeepCopy()
	next.Spec.NodeName = node
	e.world.putPod(next)
	took := DefaultPods
	if m := e.world.machines[machine]; m != nil {
		took = e.durations.of(phasePods, m)
	}
	e.after(took, func() {
		if pod := e.world.pods[key]; pod != nil && pod.DeletionTimestamp == nil && isReady(e.world.nodes[pod.Spec.NodeName]) {
			next := pod.DeepCopy()
			e.world.setPodReady(next, true)
			e.world.putPod(next)
		}
	})
}
