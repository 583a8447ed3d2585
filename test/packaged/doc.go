// Package packaged installs, upgrades and removes the agent's packages on a real host, by the lines of docs/installation.md.
package packaged
