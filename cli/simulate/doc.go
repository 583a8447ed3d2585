// Package simulate reads scenarios and prints their transcripts. What happens in between is
// coordinator/simulation's.
//
//	SCENARIO.yaml ──> manifest ──> Scenario ──> simulation ──> entries, summary ──> table, JSON lines
package simulate
