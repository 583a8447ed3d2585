// Package machinedeployment writes a MachineDeployment's template into its Machines and
// counts how far they have come. It decides nothing about who goes next.
package machinedeployment
