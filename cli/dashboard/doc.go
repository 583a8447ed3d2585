// Package dashboard is the page that kubectl refit dashboard serves:
//
//	one watch per kind -> Hub (Fleet: what is known; a Row for each machine) -> Handler -> each browser's stream
//
// A browser is sent every row once, and from then on those that have become others, gathered for a moment. What one has
// not been sent yet is a set of names, so that a browser that is slow gets fewer and larger deltas, and costs no more.
// Nothing is asked of the API server on a browser's behalf, and nothing is written: the page has no verbs.
package dashboard
