// Package scenario holds what happens on a real fleet: installing Refit, adopting
// the machines, editing the pools, and watching from outside. The demo shows it to
// people; the tests assert it. Nothing here looks into Refit: it reads the hosts
// and the API as any other user would.
package scenario
