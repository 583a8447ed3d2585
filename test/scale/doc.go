// Package scale measures what grows with the size of a fleet. Each measurement prints
// ratios against something measured in the same run, and asserts only ratios: a slow
// machine is slow for both. `make scale` runs it and shows the tables.
package scale
