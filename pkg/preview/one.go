package preview

import (
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// One is the list of a host that plans for itself, in one hop; err is why there is no plan.
func One(machine *v1alpha1.Machine, facts upgrade.Facts, a v1alpha1.Assignment, plan upgrade.Plan, now time.Time, err error) PlanList {
	h := newHost(Host{Machine: *machine, Facts: &facts}, now)
	told := slices.ContainsFunc(plan.Findings, func(f upgrade.Finding) bool { return f.Reason == upgrade.FindingKubeletDown })
	if !told {
		h.findings = append(h.findings, h.state().KubeletFindings()...)
	}
	var blocked *upgrade.Blocked
	switch {
	case err != nil:
		blocked = blockedBy(err)
	case len(plan.Steps) > 0:
		hops := 0
		h.add(plan, a, &hops)
	default:
		h.findings = append(h.findings, plan.Findings...)
	}
	item := h.plan(blocked, now)
	if err == nil && len(plan.Steps) == 0 {
		item.State, item.Refusal, item.Hash = StateUpToDate, nil, plan.Hash
	}
	return PlanList{APIVersion: v1alpha1.GroupVersion.String(), Kind: Kind, Items: []MachinePlan{item}}
}
