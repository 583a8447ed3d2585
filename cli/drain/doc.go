// Package drain is kubectl refit drain: a drain by a person's hand, with the library
// that the coordinator drains with, and a plain cordon as kubectl's own.
//
//	refuse ──> cordon all ──> drain one node after another ──> drained: stays cordoned
//	                              └─ blocked, fault, Ctrl-C ──> given back, if we cordoned it
package drain
