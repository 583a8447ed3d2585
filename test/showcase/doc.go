// Package showcase makes fleets in the middle of a rollout, of any size, for screenshots and measurements. They are made
// up: no host stands behind them. The same size always gives the same fleet.
package showcase
