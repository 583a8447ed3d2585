package v1alpha1

// Roles of a machine, as observed.
const (
	MachineRoleServing = "Serving"
	MachineRoleStandby = "Standby"
)

// What Refit writes on Nodes besides cordons.
const (
	// TaintOutdated is the key of the PreferNoSchedule taint of Nodes that are still to be drained for the rollout of
	// their pool, so that an evicted pod moves once, to a node that is finished.
	TaintOutdated = "refit.dev/outdated"
	// AnnotationScaleDownDisabled keeps the cluster autoscaler from removing a Node.
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// AnnotationScaleDownDisabledBy marks AnnotationScaleDownDisabled on a Node as ours; its value is the grant id.
	AnnotationScaleDownDisabledBy = "refit.dev/scale-down-disabled-by"
	// CordonStandby is the value of AnnotationCordonedBy on the Node of a machine that stands by. A Node that carries it and
	// is schedulable was put to work by a person.
	CordonStandby = "standby"
	// AnnotationStandbyNext on a Machine makes it the first of its pool to stand by, where spec.replicas asks for one.
	AnnotationStandbyNext = "refit.dev/standby-next"
	// AnnotationDeleteMachine is Cluster API's way to say so.
	AnnotationDeleteMachine = "cluster.x-k8s.io/delete-machine"
)
