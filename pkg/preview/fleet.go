package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Input is everything that a PlanList depends on.
type Input struct {
	Hosts []Host
	// Unmanaged hosts count for skew and are never moved.
	Unmanaged []upgrade.HostState
	// Now is when certificates are judged; unset: they are not.
	Now time.Time
}

// Host is one Machine, its template applied, with what is known of its host.
type Host struct {
	Machine v1alpha1.Machine
	// Pool is the MachineDeployment whose template was applied.
	Pool string
	// Facts of the host; nil: what the Machine reports is all.
	Facts *upgrade.Facts
	// Node is the Machine's Node; nil where it is not known.
	Node *upgrade.NodeState
	// Observed says that the Machine's assignment and plan in status are of its spec as it is here.
	Observed bool
	// Findings on the way to here.
	Findings []upgrade.Finding
	// Refusal on the way to here: nothing is done to the machine.
	Refusal *upgrade.Blocked
	// Gate is why nothing would be granted, whatever is planned: the hops are shown all the same.
	Gate *upgrade.Blocked
	// Paused says that the pool is; the Machine's own pause is in its spec.
	Paused bool
}

// New plans a fleet. The Machines' status is replaced by what the facts say.
func New(in Input) PlanList {
	f := &fleet{now: in.Now, hosts: map[string]*host{}}
	all := upgrade.Fleet{Hosts: slices.Clone(in.Unmanaged)}
	for _, h := range in.Hosts {
		one := newHost(h, in.Now)
		one.forget()
		f.hosts[h.Machine.Name] = one
		all.Hosts = append(all.Hosts, one.state())
	}
	f.readPassed(in.Hosts)
	f.readBetween(in.Hosts)
	all.HopPatch = f.between.releases
	view := upgrade.NewView(all)
	for _, state := range all.Hosts {
		h := f.hosts[state.Name]
		if h == nil || !state.Managed {
			continue
		}
		h.findings = append(h.findings, view.SkewFindings(state)...)
		h.findings = append(h.findings, state.KubeletFindings()...)
		if !state.Sidelined {
			_, _, _, h.waits = view.NextTarget(state, state.Wish)
		}
	}
	_, blocked := upgrade.JudgedHops(all, f.judge)
	list := PlanList{APIVersion: v1alpha1.GroupVersion.String(), Kind: Kind, Items: []MachinePlan{}}
	for _, h := range in.Hosts {
		one := f.hosts[h.Machine.Name]
		list.Items = append(list.Items, one.plan(f.unknownBetween(one, blocked[h.Machine.Name]), f.now))
	}
	slices.SortStableFunc(list.Items, func(a, b MachinePlan) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.Machine, b.Machine))
	})
	return list
}

// first orders machines by their first hop; those without one come last.
func first(p MachinePlan) int {
	if len(p.Hops) == 0 {
		return int(^uint(0) >> 1)
	}
	return p.Hops[0].Order
}

type fleet struct {
	now   time.Time
	hosts map[string]*host
	hops  int
	// passed are the minors that some control plane passes through.
	passed  []string
	between between
}

// host is a Host on its way.
type host struct {
	Host
	facts    upgrade.Facts // as they are after the hops so far
	reported bool          // facts are made from what the Machine reports
	from     *v1alpha1.ObservedVersions
	waits    *upgrade.Blocked
	plans    []upgrade.Plan
	hops     []Hop
	findings []upgrade.Finding
}

func newHost(in Host, now time.Time) *host {
	h := &host{Host: in}
	h.Machine = *in.Machine.DeepCopy()
	h.findings = slices.Clone(in.Findings)
	if in.Facts == nil {
		h.facts, h.reported = reportedFacts(&h.Machine), true
	} else {
		h.facts = *in.Facts
		h.disown()
		h.readRecord()
		s := &h.Machine.Status
		s.Host, s.Versions, s.OS = h.facts.Identity(), h.facts.Versions(), h.facts.ObservedOS(h.Machine.Spec.OS)
		s.Kubelet = h.facts.ObservedKubelet(h.Machine.Spec)
		if asked, known := h.facts.RequestedAPIs(); known {
			s.RequestedAPIs = asked
		}
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionCertificatesExpiring) // of other facts
		if due := upgrade.RenewalCondition(h.Machine.Spec, h.facts.Certs, now); due != nil {
			meta.SetStatusCondition(&s.Conditions, *due)
		}
	}
	if last := h.state().LastKubelet; h.reported && h.facts.Kubelet != nil && upstream(h.facts.Kubelet.Running) == "" && last != "" {
		h.facts.Kubelet = &upgrade.ComponentFacts{Installed: last}
		install(&h.facts, "kubelet", upstream(last))
	}
	h.from = h.Machine.Status.Versions.DeepCopy()
	return h
}

// disown takes away what another host of this name has run, or may be what ran it: such a
// record permits this one nothing.
func (h *host) disown() {
	s := &h.Machine.Status
	reported, now := "", h.facts.Host.MachineID
	if s.Host != nil {
		reported = s.Host.MachineID
	}
	unproven := reported == "" || now == ""
	if reported == now && !unproven || unproven && len(s.History) == 0 {
		return
	}
	s.History = nil
	if unproven {
		h.note(upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingHostUnproven,
			Message: fmt.Sprintf("the facts have machine id %q and the Machine's status has %q, so nothing shows that its history is of this host: it permits no lower version; give facts and a status that have the id", now, reported)})
		return
	}
	h.note(upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingHostReplaced,
		Message: fmt.Sprintf("the facts are of the host with machine id %s, and the Machine's status is of one with %s: the history in it permits this host no lower version; if the host was replaced or installed anew, its agent reports it, if not, give the facts of the right host", now, reported)})
}

// readRecord tells of a record of the host's own that does not count.
func (h *host) readRecord() {
	for _, problem := range h.facts.Problems {
		if problem.Field == upgrade.FieldRecord {
			h.note(upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingRecordIgnored,
				Message: "what this host ran before does not count, so it permits no lower version: " + problem.Message})
		}
	}
}

// record lists the sets that the host ran: by its Machine, and by its own journals.
func (h *host) record() []v1alpha1.Versions {
	return slices.Concat(upgrade.RecordOf(&h.Machine), h.facts.Record)
}

// state is the host as the planner of the fleet wants it.
func (h *host) state() upgrade.HostState {
	state := upgrade.StateOf(&h.Machine, h.Node, h.Facts)
	state.Record = h.record()
	return state
}

// judge plans one hop of one machine, and moves what is known of it on.
func (f *fleet) judge(hop upgrade.Hop) *upgrade.Blocked {
	h := f.hosts[hop.Machine]
	if h.Refusal != nil {
		return h.Refusal
	}
	if h.Machine.Status.Versions == nil {
		_, reason, message := upgrade.UpToDate(h.Machine.Spec, h.Machine.Status)
		return &upgrade.Blocked{Reason: reason, Message: message}
	}
	assignment := hop.Assignment(h.Machine.Generation)
	assignment.ID = "plan"
	if refusal := h.agentsRefusal(assignment); refusal != nil {
		return refusal
	}
	plan, err := h.draft(assignment, f.now)
	if err != nil {
		return err
	}
	if unasked := h.unasked(assignment.Target); len(unasked) > 0 {
		if len(plan.Steps) == 0 {
			return &upgrade.Blocked{Reason: FindingCandidatesUnknown, Message: unaskedMessage(unasked)}
		}
		h.note(upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingCandidatesUnknown, Message: unaskedMessage(unasked)})
	}
	if published := h.published(assignment); published != nil {
		plan.Hash, plan.Disruption, plan.Findings = published.Hash, published.Disruption, published.Findings
	}
	f.chosen(h, hop)
	h.add(plan, assignment, &f.hops)
	return nil
}

func (h *host) add(plan upgrade.Plan, a v1alpha1.Assignment, hops *int) {
	*hops++
	hop := Hop{Order: *hops, Target: a.Target, KubeadmRole: a.KubeadmRole, Skew: a.Skew, Disruption: plan.Disruption, Steps: stepsOf(plan)}
	for _, finding := range plan.Findings {
		if !slices.Contains(h.findings, finding) {
			h.findings = append(h.findings, finding)
		}
	}
	h.plans, h.hops = append(h.plans, plan), append(h.hops, hop)
	h.facts = after(h.facts, a.Target, plan)
}

// draft plans a hop, exactly where the packages of the host and what its repositories
// offer are known, by the versions alone where not.
func (h *host) draft(a v1alpha1.Assignment, now time.Time) (upgrade.Plan, *upgrade.Blocked) {
	in := upgrade.PlanInput{
		Machine: h.Machine.Name, Spec: h.Machine.Spec, Assignment: a, Facts: h.facts,
		Record: h.record(), Now: now, Estimate: h.reported || len(h.unasked(a.Target)) > 0,
		EtcdMoved: h.etcdMoved(), Kubelet: h.Machine.Status.Kubelet,
	}
	if h.reported {
		h.note(upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: FindingFactsUnknown,
			Message: "only what the Machine reports is known of this host, so the steps are what its versions imply, without packages and their digests: give --facts what refit-agent facts prints there"})
	} else if err := h.candidates(&in); err != nil {
		return upgrade.Plan{}, blockedBy(err)
	}
	plan, err := upgrade.NewPlan(in)
	if err != nil {
		return upgrade.Plan{}, blockedBy(err)
	}
	return plan, nil
}

// etcdMoved says that kubeadm, on the way so far, brings the etcd of its own version.
func (h *host) etcdMoved() bool {
	return slices.ContainsFunc(h.hops, func(hop Hop) bool { return hop.Target.ControlPlane != "" })
}

func blockedBy(err error) *upgrade.Blocked {
	if blocked := upgrade.IsBlocked(err); blocked != nil {
		return blocked
	}
	return &upgrade.Blocked{Reason: "PlanFailed", Message: err.Error()}
}

// candidates takes what repositories offer from the facts. As on the host, what is refused
// whatever they offer is refused first, and nothing is looked up that would change nothing.
func (h *host) candidates(in *upgrade.PlanInput) error {
	needed, err := upgrade.Check(*in)
	if err != nil || !needed {
		return err
	}
	request, _, err := upgrade.Sources(in.Facts, in.Assignment.Target, in.Spec)
	if err != nil {
		return err
	}
	var unknown []string
	in.Candidates, unknown = h.facts.Offered(request)
	if len(unknown) == 0 {
		return nil
	}
	in.Estimate = true
	h.note(upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingCandidatesUnknown, Message: unknownMessage(unknown, in.Assignment.Target)})
	return nil
}

func (h *host) note(finding upgrade.Finding) {
	if !slices.Contains(h.findings, finding) {
		h.findings = append(h.findings, finding)
	}
}

// published is the agent's own plan for the very same hop, which knows more than the Machine reports.
func (h *host) published(a v1alpha1.Assignment) *v1alpha1.PlanStatus {
	p := h.Machine.Status.Plan
	if p == nil || p.Hash == "" || !h.assigned(a) || p.AssignmentID != h.Machine.Status.Assignment.ID {
		return nil
	}
	return p
}

// agentsRefusal is why the agent has no plan for the very same hop.
func (h *host) agentsRefusal(a v1alpha1.Assignment) *upgrade.Blocked {
	f := h.Machine.Status.HostFailure
	if f == nil || h.Machine.Status.Plan != nil || !h.assigned(a) || h.Machine.Status.ObservedGeneration != h.Machine.Generation {
		return nil
	}
	return &upgrade.Blocked{Reason: f.Reason, Message: f.Message, Terminal: f.Terminal}
}

func (h *host) assigned(a v1alpha1.Assignment) bool {
	now := h.Machine.Status.Assignment
	return h.reported && h.Observed && len(h.hops) == 0 && now != nil && now.Generation == a.Generation &&
		now.KubeadmRole == a.KubeadmRole && equality.Semantic.DeepEqual(now.Target, a.Target)
}

// plan is the machine's part of the list.
func (h *host) plan(blocked *upgrade.Blocked, now time.Time) MachinePlan {
	m := &h.Machine
	p := MachinePlan{
		Machine: m.Name, Namespace: m.Namespace, MachineDeployment: h.Pool, Roles: m.Spec.Roles,
		State: StatePending, From: h.from, To: m.Spec.Versions, Disruption: v1alpha1.DisruptionNone,
		Steps: []Step{}, Hops: []Hop{}, Findings: h.findings, Refusal: blocked,
	}
	if len(h.hops) > 0 {
		p.Hops, p.Steps, p.Hash = h.hops, h.hops[0].Steps, h.plans[0].Hash
	}
	for _, hop := range h.hops {
		p.Disruption = worse(p.Disruption, hop.Disruption)
		if hop.Disruption == v1alpha1.DisruptionDrain || hop.Disruption == v1alpha1.DisruptionReboot {
			p.Drains++
		}
	}
	h.conclude(&p)
	h.concludeWork(&p)
	h.standing(&p, now)
	switch pending := h.restartsPending(); {
	case pending == "":
	case h.reported && len(p.Hops) > 0:
		p.Findings = append(p.Findings, upgrade.RestartUnjudged(pending))
	default: // also behind hops that restart nothing of the kind
		p.Findings = append(p.Findings, upgrade.RestartFinding(pending))
	}
	return p
}

// restartsPending says where what is on disk is not what runs, after the hops; "" for nowhere.
func (h *host) restartsPending() string {
	if !h.reported {
		return strings.Join(h.facts.RestartsPending(), "; ")
	}
	if c := meta.FindStatusCondition(h.Machine.Status.Conditions, v1alpha1.ConditionRestartPending); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// conclude says how the machine stands.
func (h *host) conclude(p *MachinePlan) {
	m := &h.Machine
	if h.Refusal != nil {
		p.Refusal = h.Refusal
	}
	switch met, reason, message := upgrade.UpToDate(m.Spec, m.Status); {
	case reason == upgrade.ReasonNotReported && h.Refusal == nil && !h.state().Sidelined && h.state().RoleMismatch() == nil:
		p.State, p.Refusal = StateRefused, &upgrade.Blocked{Reason: reason, Message: message}
	case p.Refusal != nil:
		p.State = StateRefused
	case len(p.Hops) > 0 && h.Gate != nil:
		p.State, p.Refusal = StateRefused, h.Gate
	case len(p.Hops) > 0:
		if h.waits != nil {
			p.Findings = append(p.Findings, upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: h.waits.Reason, Message: h.waits.Message})
		}
	case met:
		p.State = StateUpToDate
	case h.state().Sidelined:
		p.State = StateSidelined
		p.Findings = append(p.Findings, sidelined(m))
	default: // a difference that no hop closes
		p.State, p.Refusal = StateRefused, &upgrade.Blocked{Reason: reason, Message: message}
	}
}

func sidelined(m *v1alpha1.Machine) upgrade.Finding {
	f := upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingSidelined}
	switch {
	case upgrade.Failed(m):
		f.Message = "an operation failed on this machine (" + m.Status.RolloutFailure.Reason + "), and nothing is planned until it is retried: annotate it with refit.dev/retry, or change its spec"
	case m.Spec.Paused:
		f.Message = "spec.paused is set: nothing is done to this machine until it is taken away"
	default:
		f.Message = "spec.availability is OutOfService: nothing is done to this machine"
	}
	return f
}

func worse(a, b v1alpha1.Disruption) v1alpha1.Disruption {
	order := []v1alpha1.Disruption{v1alpha1.DisruptionNone, v1alpha1.DisruptionRestart, v1alpha1.DisruptionDrain, v1alpha1.DisruptionReboot}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func stepsOf(plan upgrade.Plan) []Step {
	steps := make([]Step, 0, len(plan.Steps))
	for _, s := range plan.Steps {
		steps = append(steps, Step{Description: s.Describe(), Step: s})
	}
	return steps
}
