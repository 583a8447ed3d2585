package v1alpha1

// LabelPool is the label by which adopted Machines belong to a MachineDeployment of that name.
const LabelPool = "refit.dev/pool"
