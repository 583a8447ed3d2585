// Package watch is the agent's view of the API server: one Machine, read by one
// list and one long watch, and written by server-side apply on its status. There is
// no clientset and no cache of anything else.
//
//	list (metadata.name=NAME) ──> watch for 30 to 60 minutes ──> watch again from the last version
//	        ^                                │ broken, expired
//	        └── spread over Spread when idle ┘
//
// An idle agent costs one open stream. When the API server comes back after an
// outage the agents return spread over half a minute, those at work sooner.
package watch
