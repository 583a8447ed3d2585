// Package executor runs one accepted plan on the host, step by step, with a journal.
//
//	lock ── known id? ──finished──> its recorded outcome, nothing runs
//	          │ open: from where the journal says
//	          │ new:  validate, journal, baseline
//	          v
//	forward:  capture undo -> Begin -> Do -> observe -> Done ── … ── Successful
//	                                    │ failure
//	                                    v one write: reason, what will be undone
//	back:     Begin -> Do -> Done or what could not be undone ── … ── Failed (RolledBack?)
//
// Invariants:
//   - intent is on disk before the effect, the result after it; a step that was begun
//     and not done is run again, and every step looks before it acts;
//   - the direction turns at most once, and a crash does not turn it;
//   - a journal that cannot be written stops the work before its next effect, and
//     leaves it open; it is never a reason to roll back;
//   - the holds of the host's owner are back on every exit that is not a crash, and a
//     crash is followed by a resume;
//   - nothing here asks the Kubernetes API whether to go on.
package executor
