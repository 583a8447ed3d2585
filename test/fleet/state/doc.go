// Package state is what is known about a fleet between two calls of the fleet program: one JSON file per fleet, and the
// locks that keep two callers apart.
package state
