// Package fakehost plays hosts for a real API server: each has versions that run on it, and
// an agent and an executor that speak the protocol as the real ones do (plan, stage, accept
// under the reading that carried the grant, work, report), but change nothing anywhere.
package fakehost
