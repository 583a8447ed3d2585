// Package adopt writes down as Machines and MachineDeployments what a cluster
// already runs, so that no wish differs from what is there and nothing changes on
// any host. It is pure: Nodes, static pods and existing objects in, objects out.
package adopt
