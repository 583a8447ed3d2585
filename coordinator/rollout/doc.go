// Package rollout gives places away: it reads the whole fleet of a namespace, asks the
// gates about each machine in order, and reserves a slot in the ledger for those that
// may go. It writes nothing but the ledger; what holds a machine back is left on the
// board for that machine's own reconcile to word.
package rollout
