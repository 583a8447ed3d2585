package drain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scene is everything that a forecast is made from.
type scene struct {
	node        string
	now         time.Time
	opts        Options
	unreachable nodeState
	pods        []judged
	// members are all pods of a budget that holds one of the node's.
	members func(*policyv1.PodDisruptionBudget) []*corev1.Pod
	// unread is why those of a budget are not known, nil where they are.
	unread  func(*policyv1.PodDisruptionBudget) error
	volumes []AttachedVolume
	// webhooks are those that only pods of this node answer, by pod.
	webhooks map[types.NamespacedName]*serving
	// unknown is what could not be read of them.
	unknown []string
}

// judged is a pod of the node with what the filters say of it.
type judged struct {
	pod             *corev1.Pod
	verdict         verdict
	reason, message string
	budgets         []*policyv1.PodDisruptionBudget
}

// foresight is a forecast in the making.
type foresight struct {
	scene
	out     Forecast
	taken   map[types.UID]int32 // disruptions of each budget that go at once
	here    map[types.UID][]neighbour
	lost    map[types.UID]int32 // pods of each budget that go at once, and that nothing makes anew
	budgets map[types.UID]int   // where each budget is in out
}

// foresee is pure: it judges by the very functions by which a drain does.
func foresee(in scene) Forecast {
	f := &foresight{scene: in, taken: map[types.UID]int32{}, here: map[types.UID][]neighbour{}, lost: map[types.UID]int32{}, budgets: map[types.UID]int{}}
	f.out = Forecast{Node: in.node, Pods: []PodForecast{}, Volumes: in.volumes, OnlyNode: in.opts.OnlyNode, Unknown: in.unknown}
	if in.opts.LoadBalancerDelay > 0 {
		f.out.LoadBalancerDelay = &metav1.Duration{Duration: in.opts.LoadBalancerDelay}
	}
	entries, of := f.entries()
	f.countLost(entries, of)
	turns := turns{}
	for _, e := range entries {
		p, by := f.pod(of[e])
		if p.Outlook == OutlookNow && e.order > entries[0].order {
			p.Outlook, p.Reason, p.Message = OutlookWait, ReasonWaitsForOthers, "is evicted when those before it have left"
		}
		if p.Order = e.order; e.order == ownOrder {
			p.Order = mostOrder
		}
		p.Warning = f.warning(e.pod, turns.before(e.order))
		turns[e.order] = max(turns[e.order], graceOf(e.pod))
		f.out.Pods = append(f.out.Pods, p)
		if by != nil {
			f.note(by, p)
		}
	}
	f.out.Least.Duration = turns.before(math.MaxInt) + turns[math.MaxInt]
	f.conclude()
	return f.out
}

// countLost finds the pods of each budget, and how many of them go at once and are not made anew.
func (f *foresight) countLost(entries []*entry, of map[*entry]judged) {
	var asking []judged
	for _, e := range entries {
		j := of[e]
		if len(j.budgets) != 1 || j.verdict == verdictRefuse || j.pod.Status.Phase == corev1.PodPending {
			continue
		}
		b := j.budgets[0]
		gone := j.verdict == verdictWait
		f.here[b.UID] = append(f.here[b.UID], neighbour{j.pod, gone, gone})
		if j.verdict == verdictEvict && guarded(j.pod) && allows(b, j.pod) {
			asking = append(asking, j)
		}
	}
	taken := map[types.UID]int32{}
	for _, j := range asking {
		b := j.budgets[0]
		if why, _ := f.inVain(b, j.pod); why != "" || ready(j.pod) && taken[b.UID] >= b.Status.DisruptionsAllowed {
			continue
		}
		if ready(j.pod) {
			taken[b.UID]++
		}
		if metav1.GetControllerOf(j.pod) == nil {
			f.lost[b.UID]++
		}
	}
}

// inVain is vain, under the policy for which it counts.
func (f *foresight) inVain(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) (why string, lasting bool) {
	if f.opts.OnTimeout != ActionFail {
		return "", false
	}
	return vain(b, pod, f.here[b.UID])
}

// entries are the pods that have to leave, as they would go.
func (f *foresight) entries() ([]*entry, map[*entry]judged) {
	var out []*entry
	of := map[*entry]judged{}
	for _, j := range f.pods {
		if j.verdict == verdictIgnore {
			f.out.Ignored = append(f.out.Ignored, IgnoredPod{j.pod.Namespace, j.pod.Name, whyIgnored(j.pod)})
			continue
		}
		e := &entry{pod: j.pod}
		if e.order, _ = orderOf(j.pod); f.opts.EvictLast(j.pod) {
			e.order = ownOrder
		}
		out, of[e] = append(out, e), j
	}
	slices.SortFunc(out, compareEntries)
	slices.SortFunc(f.out.Ignored, func(a, b IgnoredPod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, of
}

func whyIgnored(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case finished(pod):
		return IgnoredFinished
	case mirror:
		return IgnoredMirror
	case owner != nil && owner.Kind == "DaemonSet":
		return IgnoredDaemonSet
	}
	return IgnoredOwn
}

// pod says what becomes of it, and by which budget, if by one alone.
func (f *foresight) pod(j judged) (PodForecast, *policyv1.PodDisruptionBudget) {
	p := PodForecast{Namespace: j.pod.Namespace, Name: j.pod.Name, Outlook: OutlookNow, Ready: ready(j.pod), Budgets: namesOf(j.budgets)}
	switch j.verdict {
	case verdictRefuse:
		p.Outlook, p.Reason, p.Message = OutlookNever, j.reason, j.message
		p.Help = fmt.Sprintf("kubectl describe pod -n %s %s", p.Namespace, p.Name)
		return p, nil
	case verdictWait:
		p.Outlook, p.Reason, p.Awaited, p.Message = OutlookWait, ReasonPodsTerminating, true, "is leaving already"
		if len(j.pod.Finalizers) > 0 {
			p.Message += "; finalizers hold it: " + strings.Join(j.pod.Finalizers, ", ")
		}
		return p, nil
	case verdictIgnore, verdictEvict:
	}
	if never, _ := f.closing(j.pod); never != "" {
		p.Outlook, p.Reason, p.Message = OutlookNever, ReasonFailClosedWebhook, never
		return p, nil
	}
	switch {
	case !guarded(j.pod) || len(j.budgets) == 0:
		return p, nil
	case len(j.budgets) > 1:
		p.Outlook, p.Reason, p.Message = OutlookNever, ReasonPDBOverlap, overlapMessage(j.budgets)
		p.Help = fmt.Sprintf("kubectl edit poddisruptionbudget -n %s %s", p.Namespace, j.budgets[0].Name)
		f.untilTimeout(&p)
		return p, nil
	}
	b := j.budgets[0]
	if p.Outlook, p.Message = f.under(b, j.pod); p.Outlook != OutlookNow {
		p.Reason = ReasonEvictionBlocked
		if err := f.unread(b); err != nil {
			p.Message += "; which of its pods are not ready is not known: " + err.Error()
		}
	}
	f.untilTimeout(&p)
	return p, b
}

// under says whether the budget lets the pod go, counting what it has let go before.
func (f *foresight) under(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) (Outlook, string) {
	why, lasting := f.inVain(b, pod)
	switch {
	case lasting:
		return OutlookNever, why
	case why != "":
		return OutlookWait, why
	case allows(b, pod):
		return f.inTurn(b, pod)
	case hopeless(pod, []*policyv1.PodDisruptionBudget{b}):
		return OutlookNever, explain(b, pod)
	case never(b):
		return OutlookWait, explain(b, pod)
	case f.closes(b) && hope(b, pod) == "":
		return OutlookNever, fmt.Sprintf("%s; and it will allow none, since nothing makes another pod in place of those that go", explain(b, pod))
	case !ready(pod) && !f.mayRecover(b):
		return OutlookNever, explain(b, pod)
	}
	return OutlookWait, explain(b, pod)
}

// inTurn says whether the pod is one of those that an open budget lets go at once, and what becomes of the others.
func (f *foresight) inTurn(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) (Outlook, string) {
	switch allowed := b.Status.DisruptionsAllowed; {
	case !ready(pod) || f.taken[b.UID] < allowed:
		if ready(pod) { // any other takes nothing from the budget
			f.taken[b.UID]++
		}
		return OutlookNow, ""
	case f.closes(b) && hope(b, pod) == "":
		return OutlookNever, fmt.Sprintf("budget %s allows %d disruptions, and none after that, since nothing makes another pod in place of those that go; "+
			"delete them, or let the budget allow more", b.Name, allowed)
	case f.opts.OnlyNode && stays(pod):
		return OutlookNever, fmt.Sprintf("budget %s allows %d disruptions, and no other node takes the replacement of a pod of this one", b.Name, allowed)
	default:
		return OutlookWait, fmt.Sprintf("budget %s allows %d disruptions at a time", b.Name, allowed)
	}
}

// closes says that the budget needs every pod that is left of it once those have gone that it allows now.
func (f *foresight) closes(b *policyv1.PodDisruptionBudget) bool {
	return f.lost[b.UID] > 0 && countsUnmanaged(b) && b.Status.DesiredHealthy >= b.Status.ExpectedPods-f.lost[b.UID]
}

// mayRecover says whether the budget's health can come back without the pods that are
// unwell on this node: those are the ones that it keeps there. A budget that needs no
// healthy pod allows as many disruptions as there are healthy ones, and so none while all
// are unwell: the API server lets unwell pods go for the health of the others only where
// the budget needs any.
func (f *foresight) mayRecover(b *policyv1.PodDisruptionBudget) bool {
	healthy, needed := b.Status.CurrentHealthy, max(b.Status.DesiredHealthy, 1)
	if b.Status.ObservedGeneration < b.Generation || healthy >= needed || f.unread(b) != nil {
		return true
	}
	members := f.members(b)
	able := max(b.Status.ExpectedPods-int32(len(members)), 0) // those that are not there yet
	for _, pod := range members {
		if why, starting := f.unready(pod); why == "" || starting || pod.Spec.NodeName != f.node {
			able++
		}
	}
	return able >= needed
}

// untilTimeout is what a policy does with what would otherwise never go.
func (f *foresight) untilTimeout(p *PodForecast) {
	if p.Outlook != OutlookNever || f.opts.OnTimeout == ActionFail {
		return
	}
	p.Outlook = OutlookWait
	does := "it is left behind"
	if f.opts.OnTimeout == ActionDelete {
		does = "it is deleted past its budget"
	}
	p.Message += fmt.Sprintf("; at the timeout of %s %s, as the policy is %s", f.opts.Timeout, does, f.opts.OnTimeout)
}

// note adds the pod to what is said of its budget.
func (f *foresight) note(b *policyv1.PodDisruptionBudget, p PodForecast) {
	i, known := f.budgets[b.UID]
	if !known {
		i = len(f.out.Budgets)
		f.budgets[b.UID] = i
		f.out.Budgets = append(f.out.Budgets, BudgetForecast{
			Namespace: b.Namespace, Name: b.Name, Outlook: OutlookNow, Allowed: b.Status.DisruptionsAllowed, Pods: []string{},
		})
	}
	of := &f.out.Budgets[i]
	of.Pods = append(of.Pods, p.Name)
	if worse(p.Outlook, of.Outlook) {
		of.Outlook, of.Message = p.Outlook, p.Message
	}
	if p.Outlook == OutlookNow || p.Reason != ReasonEvictionBlocked {
		return
	}
	of.Help = fmt.Sprintf("kubectl describe poddisruptionbudget -n %s %s", b.Namespace, b.Name)
	if p.Outlook == OutlookNever {
		of.Help = fmt.Sprintf("kubectl edit poddisruptionbudget -n %s %s", b.Namespace, b.Name)
	}
	if len(of.Unready) > 0 || never(b) || b.Status.DisruptionsAllowed > 0 {
		return
	}
	for _, pod := range f.members(b) {
		if why, starting := f.unready(pod); why != "" {
			of.Unready = append(of.Unready, UnreadyPod{Name: pod.Name, Node: pod.Spec.NodeName, Why: why, Starting: starting})
		}
	}
	slices.SortFunc(of.Unready, func(a, b UnreadyPod) int { return strings.Compare(a.Name, b.Name) })
}

func worse(a, b Outlook) bool {
	ranks := []Outlook{OutlookNow, OutlookWait, OutlookNever}
	return slices.Index(ranks, a) > slices.Index(ranks, b)
}

// startingFor is how long a pod without any fault of its containers counts as starting.
const startingFor = 10 * time.Minute

// unready says why a pod is not ready, "" when it is, and whether it may be by itself.
func (f *foresight) unready(pod *corev1.Pod) (why string, starting bool) {
	switch {
	case ready(pod):
		return "", false
	case pod.DeletionTimestamp != nil:
		return "being deleted", false
	}
	if fault := containerFault(pod); fault != "" {
		return fault, false
	}
	since := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return "not scheduled: " + c.Message, false
		case c.Type == corev1.PodReady && !c.LastTransitionTime.IsZero():
			since = c.LastTransitionTime.Time
		}
	}
	if f.now.Sub(since) > startingFor {
		return "not ready since " + utc(since), false
	}
	return "still starting", true
}

// containerFault is what keeps a container of a pod from running; "" for nothing that time would not cure.
func containerFault(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason
		}
		if c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 {
			return "container " + c.Name + " has failed"
		}
	}
	return ""
}

// conclude words the whole.
func (f *foresight) conclude() {
	out := &f.out
	out.Outlook = OutlookNow
	var inTheWay []BlockedPod
	for _, p := range out.Pods {
		if worse(p.Outlook, out.Outlook) {
			out.Outlook, inTheWay = p.Outlook, nil
		}
		if p.Outlook == out.Outlook && p.Reason != "" {
			inTheWay = append(inTheWay, BlockedPod{Reason: p.Reason})
		}
	}
	if len(inTheWay) > 0 {
		out.Reason = gravestReason(inTheWay)
	}
	if trouble := f.unreachable.trouble; trouble != "" && len(out.Pods) > 0 && out.Outlook != OutlookNever {
		out.Outlook, out.Reason = OutlookWait, ReasonPodsTerminating
		if !f.unreachable.unreachable.IsZero() {
			out.Reason = ReasonNodeUnreachable
		}
		out.Message = trouble
		return
	}
	out.Message = f.words()
}

// words are one line for people: numbers first, then what is in the way.
func (f *foresight) words() string {
	out := &f.out
	if len(out.Pods) == 0 {
		return "no pod has to leave"
	}
	counts := []string{}
	for _, c := range []struct {
		of   Outlook
		text string
	}{{OutlookNow, "at once"}, {OutlookWait, "later"}, {OutlookNever, "never"}} {
		if n := out.Count(c.of); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, c.text))
		}
	}
	text := "pods that leave: " + strings.Join(counts, ", ")
	if lines := f.lines(); len(lines) > 0 {
		return text + "; " + enumerate(lines)
	}
	return text
}

// lines say what is in the way, and what is worth a warning.
func (f *foresight) lines() []string {
	out := &f.out
	var lines []string
	for _, b := range out.Budgets {
		if b.Outlook == out.Outlook && b.Message != "" {
			lines = append(lines, fmt.Sprintf("%s (%s)", b.Message, b.Namespace+": "+enumerateNames(b.Pods)))
		}
	}
	for _, p := range out.Pods {
		if out.Outlook != OutlookNow && p.Outlook == out.Outlook && p.Message != "" && p.Reason != ReasonEvictionBlocked && p.Reason != ReasonWaitsForOthers {
			lines = append(lines, p.String())
		}
	}
	for _, p := range out.Pods {
		if p.Warning != "" {
			lines = append(lines, fmt.Sprintf("warning: %s/%s: %s", p.Namespace, p.Name, p.Warning))
		}
	}
	return lines
}

func enumerateNames(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(slices.Clone(names[:mostNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
