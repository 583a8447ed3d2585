// Package preview shows what Refit would do to a fleet or to one host before anything
// is done. It decides nothing: which hops a machine takes and what they consist of is
// said by pkg/upgrade, with what is known of each host.
//
//	facts, or what a Machine reports ──> upgrade.JudgedHops ──> each hop: upgrade.NewPlan ──> PlanList
package preview
