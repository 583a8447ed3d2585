// Package machine leads each Machine through the handshake. One reconcile moves it at
// most one step; the slot in the ledger says where it stands, so that a coordinator
// that is killed at any point goes on from there:
//
//	spec ≠ observed ─> assignment ─> (agent) plan, staged ─> gates (package rollout) ─> slot Reserved
//	Reserved   cordon, drain                     ─> Granted     or taken back: uncordon, release
//	Granted    status.grant, until accepted      ─> Accepted    or taken back: void grant, uncordon, release
//	Accepted   the host works; never revoked     ─> Verifying   when lastOperation has ended
//	Verifying  health, uncordon, soak, history   ─> released    or, when it failed, given back if healthy
//
// Each change of the ledger ends the pass: the next one reads the Machine live, after
// the ledger write, and carries its resourceVersion in the status write.
package machine
