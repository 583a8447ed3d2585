// Package steps holds what each kind of step does, one file each. A step is data
// (upgrade.Step); what is here makes it so on the host.
//
//	look at the host ─> is it so already? ──yes──────────────┐
//	                          │no                            v
//	                      one effect ──> look again ──> is it so now? ─no─> Failure
//
// Every step converges: after a crash it is run again, and it looks before it acts.
// Success is what was observed afterwards, never an exit code. What undoes a step is
// captured before its first effect, as steps again, so that it can be recorded.
package steps
