// Package plan gathers what a plan is made from, out of files, out of a cluster, or out
// of files laid over a cluster, and has pkg/preview make it.
//
//	files ──> manifest ──> objects ─┐                      ┌─ facts, matched to their Machines
//	cluster ──────────────────────> Fleet ──> templates ──> preview.New ──> the machines that were asked for
package plan
