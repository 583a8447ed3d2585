// Package report decides what the agent says of its host: a pure function from what
// is known (facts, journal, plan) to the agent's part of a Machine's status, and the
// rules for when it is worth a write.
//
// Server-side apply removes what a manager stops saying, so every report is whole:
// what the agent does not know anew it takes over from the API server (Base).
package report
