// Package launch starts the executor as transient units of systemd and reads what
// it left in files. Nothing is forked: the units belong to systemd, so that they
// outlive the agent and are found again by name.
//
//	refit-probe-facts.service       what runs on the host
//	refit-probe-candidates.service  what the repositories offer
//	refit-probe-stage.service       downloads and simulates a plan
//	refit-op-<grant>.service        carries an accepted plan out
//
// The probes have fixed names: a restarted agent replaces what an earlier one
// started, and no unit is left behind.
package launch
