// Package plainhost holds tests of the programs as they are installed, on the machine
// that the tests run on: a Linux host that need not have Kubernetes, systemd or root.
// What is expected is what the machine's own tools say.
package plainhost
