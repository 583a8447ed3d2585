// Package upgrade decides what would change on a host and how it gets there. It is
// pure: no client, no clock, no files, no exec. The agent, the coordinator and the
// CLI all call it, so that what is shown before is what is done later.
//
//	facts (agent/host probes) ─┐
//	assignment (coordinator)  ─┼─> Plan ──> steps as data ──> executor
//	candidates (package index)─┘
package upgrade
