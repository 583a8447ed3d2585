// Package drain takes the pods off a node through the Eviction API, and gives the
// node back. It is driven by watches: one on the node's pods, and one on
// PodDisruptionBudgets while an eviction is blocked. A blocked eviction is tried
// again when an event says that it may succeed now, and otherwise only at a slow,
// jittered pace per drain, however many pods are blocked.
//
//	select (kubectl's filters) ──> refuse before anything is evicted
//	evict with UID precondition ─> leaving ──> gone
//	      └─ 429 budget ─> blocked ─ budget or pod event ─> evict again
//	deadline ──> Blocked, naming pod, budget and since when
//
// Nothing is ever deleted past its budget unless the policy for the deadline is Delete.
package drain
