package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Reasons of Blocked and of blocked pods.
const (
	// ReasonEvictionBlocked: a budget allows no disruption.
	ReasonEvictionBlocked = "EvictionBlocked"
	// ReasonPDBOverlap: more than one budget matches a pod, so that the API server can never evict it.
	ReasonPDBOverlap = "PDBOverlap"
	// ReasonUnmanagedPods: nothing would recreate the pod, and the policy is Fail.
	ReasonUnmanagedPods = "UnmanagedPods"
	// ReasonEmptyDirPods: the pod's emptyDir data would be lost, and the policy is Fail.
	ReasonEmptyDirPods = "EmptyDirPods"
	// ReasonMissingPermission: this client may not do what a drain needs.
	ReasonMissingPermission = "MissingPermission"
	// ReasonEvictionForbidden: admission refuses the eviction.
	ReasonEvictionForbidden = "EvictionForbidden"
	// ReasonDeletionForbidden: the policy deletes what is left at the timeout, and admission refuses the deletion.
	ReasonDeletionForbidden = "DeletionForbidden"
	// ReasonNamespaceTerminating: the pod's namespace is being deleted, and takes the pod with it.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonPodsTerminating: pods were evicted but have not ended.
	ReasonPodsTerminating = "PodsTerminating"
	// ReasonNodeUnreachable: pods cannot end, since nothing is heard of the node's kubelet.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonVolumesAttached: the pods have left, but volumes of theirs are still attached.
	ReasonVolumesAttached = "VolumesAttached"
	// ReasonLoadBalancers: no pod is evicted before load balancers have had time to leave the node out.
	ReasonLoadBalancers = "LoadBalancers"
	// ReasonUncordoned: someone has made the node schedulable since it was cordoned for this drain.
	ReasonUncordoned = "Uncordoned"
	// ReasonDrainOrderUnreadable: the pod's drain-order label is no number, and counts as 0.
	ReasonDrainOrderUnreadable = "DrainOrderUnreadable"
	// ReasonPodsComeBack: the pod's controller puts pods onto the cordoned node as fast as they are evicted.
	ReasonPodsComeBack = "PodsComeBack"
	// ReasonFailClosedWebhook: without the pod nothing answers a webhook that its replacement has to pass.
	ReasonFailClosedWebhook = "FailClosedWebhook"
	// ReasonWaitsForOthers: the pod goes last, and others are still there.
	ReasonWaitsForOthers = "WaitsForOthers"
	// ReasonEvictionFailed: the API server failed to answer.
	ReasonEvictionFailed = "EvictionFailed"
)

// Blocked says that a drain did not end: why, and which pods are in the way.
type Blocked struct {
	Reason  string
	Message string
	// Permanent: time alone does not help; someone has to change a pod, a budget, a role or the policy.
	Permanent bool
	Pods      []BlockedPod
	// Volumes that are still attached, where that is the reason.
	Volumes []AttachedVolume
}

// Error implements error.
func (b *Blocked) Error() string { return b.Reason + ": " + b.Message }

// BlockedPod is a pod that has not left its node.
type BlockedPod struct {
	Namespace string
	Name      string
	UID       types.UID
	// PDBs are the names of the budgets that match the pod.
	PDBs []string
	// Since when it is in this state.
	Since time.Time
	// Reason and Message say what holds it and what would help.
	Reason  string
	Message string
}

// String is one line for people.
func (p BlockedPod) String() string {
	return fmt.Sprintf("%s/%s since %s: %s", p.Namespace, p.Name, utc(p.Since), p.Message)
}

// mostNamed keeps a message readable; the fields have them all.
const mostNamed = 5

func describe(pods []BlockedPod) string {
	lines := make([]string, 0, len(pods))
	for _, p := range pods {
		lines = append(lines, p.String())
	}
	return enumerate(lines)
}

func enumerate(lines []string) string {
	if more := len(lines) - mostNamed; more > 0 {
		lines = append(slices.Clone(lines[:mostNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// gravest orders reasons: the one that needs a human most names the whole drain.
var gravest = []string{
	ReasonMissingPermission, ReasonPDBOverlap, ReasonUnmanagedPods, ReasonEmptyDirPods, ReasonPodsComeBack, ReasonFailClosedWebhook,
	ReasonDeletionForbidden, ReasonEvictionForbidden, ReasonNodeUnreachable, ReasonEvictionBlocked, ReasonEvictionFailed,
	ReasonNamespaceTerminating, ReasonPodsTerminating, ReasonWaitsForOthers,
}

// CompareBlocked orders events of blocked pods: what most needs a person comes first.
func CompareBlocked(a, b Event) int {
	if a.Lasting != b.Lasting && a.Reason == b.Reason {
		if a.Lasting {
			return -1
		}
		return 1
	}
	return cmp.Compare(slices.Index(gravest, a.Reason), slices.Index(gravest, b.Reason))
}

func gravestReason(pods []BlockedPod) string {
	seen := map[string]bool{}
	for _, p := range pods {
		seen[p.Reason] = true
	}
	for _, reason := range gravest {
		if seen[reason] {
			return reason
		}
	}
	return ReasonEvictionFailed
}
