package v1alpha1

// What Refit writes on Nodes besides cordons.
const (
	// TaintOutdated is the key of the PreferNoSchedule taint of Nodes that are still to be drained for the rollout of
	// their pool, so that an evicted pod moves once, to a node that is finished.
	TaintOutdated = "refit.dev/outdated"
)
