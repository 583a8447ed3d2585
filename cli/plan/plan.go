package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// NotFound says that something was asked for by name and is not there.
type NotFound struct{ Name string }

// Error implements error.
func (n NotFound) Error() string {
	return fmt.Sprintf("%s is not there: name a Machine, or a pool as machinedeployment/NAME", n.Name)
}

// Plan plans the whole fleet, and gives the plans of those that are named: Machines, or
// machinedeployment/NAME; all when none is.
func (f *Fleet) Plan(names []string, now time.Time) (preview.PlanList, error) {
	list := preview.PlanList{APIVersion: v1alpha1.GroupVersion.String(), Kind: preview.Kind, Items: []preview.MachinePlan{}, Findings: f.findings}
	for _, namespace := range f.namespaces() {
		in, err := f.input(namespace, now)
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, preview.New(in).Items...)
	}
	return selected(list, names, f.pools)
}

// namespaces of the Machines: each holds one cluster.
func (f *Fleet) namespaces() []string {
	var out []string
	for _, m := range f.machines {
		out = append(out, m.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *Fleet) input(namespace string, now time.Time) (preview.Input, error) {
	in := preview.Input{Now: now}
	managed := map[string]bool{}
	for _, m := range f.machines {
		if m.Namespace != namespace {
			continue
		}
		host, err := f.host(m)
		if err != nil {
			return in, fmt.Errorf("%s: %w", position(m), err)
		}
		managed[m.Name] = true
		in.Hosts = append(in.Hosts, host)
	}
	for _, n := range f.nodes {
		if !managed[n.Name] {
			in.Unmanaged = append(in.Unmanaged, upgrade.Unmanaged(n.Name, nodeState(n)))
		}
	}
	return in, nil
}

// host is a Machine with its template, as the planner wants it.
func (f *Fleet) host(m *machine) (preview.Host, error) {
	claims, err := f.claims(m)
	if err != nil {
		return preview.Host{}, err
	}
	observed := m.Spec
	if m.live != nil {
		observed = m.live.Spec
	}
	h := preview.Host{}
	switch len(claims) {
	case 0:
	case 1:
		h.Pool = claims[0].Name
		if h.Findings, err = template(m, claims[0]); err != nil {
			return h, err
		}
		if h.Refusal, err = unwritable(m, claims[0]); err != nil {
			return h, err
		}
		h.Gate = upgrade.UnsupportedStrategy(claims[0])
		if h.Paused = claims[0].Spec.Paused; h.Paused {
			h.Findings = append(h.Findings, upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: FindingPoolPaused,
				Message: fmt.Sprintf("MachineDeployment %s is paused: nothing is granted until it is resumed", h.Pool)})
		}
	default:
		names := make([]string, 0, len(claims))
		for _, d := range claims {
			names = append(names, d.Name)
		}
		h.Refusal = &upgrade.Blocked{Reason: ReasonConflict, Terminal: true,
			Message: "the MachineDeployments " + strings.Join(names, " and ") + " both match this Machine, and so neither writes into it: correct a selector"}
	}
	h.Machine, h.Observed = m.Machine, equality.Semantic.DeepEqual(m.Spec, observed)
	for _, n := range f.nodes {
		if n.Name == m.Name {
			state := nodeState(n)
			h.Node = &state
		}
	}
	if m.facts != nil {
		h.Facts = &m.facts.Facts
	}
	return h, nil
}

// nodeState is what counts of a Node. One in a file that says nothing of being ready may be.
func nodeState(n *corev1.Node) upgrade.NodeState {
	return upgrade.NodeState{
		Labels: n.Labels, Kubelet: n.Status.NodeInfo.KubeletVersion,
		NotReady: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
		}),
	}
}

// selected leaves what was asked for.
func selected(list preview.PlanList, names []string, pools []*v1alpha1.MachineDeployment) (preview.PlanList, error) {
	if len(names) == 0 {
		return list, nil
	}
	all := list.Items
	list.Items = []preview.MachinePlan{}
	for _, name := range names {
		fits, err := fitting(name, pools)
		if err != nil {
			return list, err
		}
		if !slices.ContainsFunc(all, fits) && !isPool(name) {
			return list, NotFound{name}
		}
	}
	for _, name := range names { // a pool that is there and selects nothing
		if fits, err := fitting(name, pools); err == nil && !slices.ContainsFunc(all, fits) {
			list.Findings = append(list.Findings, upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingNoMachine,
				Message: name + " matches no Machine: correct its selector, or label the Machines"})
		}
	}
	for _, item := range all {
		wanted := slices.ContainsFunc(names, func(name string) bool {
			fits, err := fitting(name, pools)
			return err == nil && fits(item)
		})
		if wanted {
			list.Items = append(list.Items, item)
		}
	}
	return list, nil
}

// poolKinds are the names by which people ask for a pool.
var poolKinds = []string{"machinedeployment", "machinedeployments", "machd", "machinedeployment.refit.dev", "machinedeployments.refit.dev"}

func isPool(name string) bool {
	kind, _, typed := strings.Cut(name, "/")
	return typed && slices.Contains(poolKinds, strings.ToLower(kind))
}

func fitting(name string, pools []*v1alpha1.MachineDeployment) (func(preview.MachinePlan) bool, error) {
	kind, of, typed := strings.Cut(name, "/")
	if !typed {
		kind, of = "machine", name
	}
	switch kind = strings.ToLower(kind); {
	case slices.Contains([]string{"machine", "machines", "mach", "machine.refit.dev", "machines.refit.dev"}, kind):
		return func(p preview.MachinePlan) bool { return p.Machine == of }, nil
	case slices.Contains(poolKinds, kind):
		if !slices.ContainsFunc(pools, func(d *v1alpha1.MachineDeployment) bool { return d.Name == of }) {
			return nil, NotFound{name}
		}
		return func(p preview.MachinePlan) bool { return p.MachineDeployment == of }, nil
	}
	return nil, NotFound{name}
}

// Empty says that there is no Machine at all.
func (f *Fleet) Empty() bool { return len(f.machines) == 0 }

// Find adds a finding about the whole.
func (f *Fleet) Find(reason, message string) {
	f.findings = append(f.findings, upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: reason, Message: message})
}
