package drain

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Defaults of policies that name no time.
const (
	DefaultTimeout             = 30 * time.Minute
	DefaultVolumeDetachTimeout = 5 * time.Minute
)

// Action is what a policy does. The words are those of v1alpha1.DrainSpec.
type Action string

// The actions of the policies.
const (
	ActionFail    Action = "Fail"
	ActionEvict   Action = "Evict"
	ActionProceed Action = "Proceed"
	ActionDelete  Action = "Delete"
)

// Options are the policies of one drain. The zero value is the safe one, but for
// EmptyDir: see OptionsFor.
type Options struct {
	// Timeout of the whole drain. 0: DefaultTimeout.
	Timeout time.Duration
	// OnTimeout is ActionFail, ActionProceed (go on with pods left) or ActionDelete. "": ActionFail.
	OnTimeout Action
	// EmptyDir is ActionEvict or ActionFail, for pods with emptyDir volumes. "": ActionEvict.
	EmptyDir Action
	// UnmanagedPods is ActionEvict or ActionFail, for pods that nothing recreates. "": ActionFail.
	UnmanagedPods Action
	// SkipWaitForDeleteTimeout stops waiting for pods whose deletion is overdue by more than this. 0: wait.
	SkipWaitForDeleteTimeout time.Duration
	// LoadBalancers is what Take tells them of the node. The zero value excludes it.
	LoadBalancers LoadBalancers
	// LoadBalancerDelay is how long load balancers have to leave the node out before the first pod is evicted. 0: none.
	LoadBalancerDelay time.Duration
	// AwaitVolumes waits, when the pods have left, until their volumes are detached: for a host that is to go down.
	AwaitVolumes bool
	// VolumeDetachTimeout bounds that wait, which begins when the pods have left. 0: DefaultVolumeDetachTimeout.
	VolumeDetachTimeout time.Duration
	// OnVolumesAttached is ActionFail or ActionProceed, for volumes that are attached after that. "": ActionFail.
	OnVolumesAttached Action
	// IsOwnPod names pods that are left where they are, such as the one that drains. Optional.
	IsOwnPod func(*corev1.Pod) bool
	// EvictLast names pods that are evicted only when every other pod has left, such as the one that drains: a request
	// that is cut off half way leaves its budget charged for two minutes. Optional.
	EvictLast func(*corev1.Pod) bool
	// Progress is told of each change, from one goroutine. It must not block. Optional.
	Progress func(Event)
}

// OptionsFor translates a Machine's drain policy and fills in what it leaves open.
func OptionsFor(spec *v1alpha1.DrainSpec) Options {
	if spec == nil {
		return Options{}.withDefaults()
	}
	o := Options{
		OnTimeout:         Action(spec.OnTimeout),
		EmptyDir:          Action(spec.EmptyDir),
		UnmanagedPods:     Action(spec.UnmanagedPods),
		OnVolumesAttached: Action(spec.OnVolumesAttached),
	}
	if spec.Timeout != nil {
		o.Timeout = spec.Timeout.Duration
	}
	if spec.SkipWaitForDeleteTimeout != nil {
		o.SkipWaitForDeleteTimeout = spec.SkipWaitForDeleteTimeout.Duration
	}
	if spec.LoadBalancerDelay != nil {
		o.LoadBalancerDelay = spec.LoadBalancerDelay.Duration
	}
	if spec.VolumeDetachTimeout != nil {
		o.VolumeDetachTimeout = spec.VolumeDetachTimeout.Duration
	}
	return o.withDefaults()
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.VolumeDetachTimeout <= 0 {
		o.VolumeDetachTimeout = DefaultVolumeDetachTimeout
	}
	o.OnTimeout = cmp.Or(o.OnTimeout, ActionFail)
	o.EmptyDir = cmp.Or(o.EmptyDir, ActionEvict)
	o.UnmanagedPods = cmp.Or(o.UnmanagedPods, ActionFail)
	o.OnVolumesAttached = cmp.Or(o.OnVolumesAttached, ActionFail)
	if o.IsOwnPod == nil {
		o.IsOwnPod = func(*corev1.Pod) bool { return false }
	}
	if o.EvictLast == nil {
		o.EvictLast = func(*corev1.Pod) bool { return false }
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	return o
}

// EventKind says what happened to a pod during a drain.
type EventKind string

// The events of a drain. Blocked is sent again only when its reason or message changes.
// Waiting and Warning are about the node, unless they name a pod.
const (
	EventEvicted EventKind = "Evicted" // the API server accepted the eviction
	EventDeleted EventKind = "Deleted" // deleted past its budget, by policy
	EventBlocked EventKind = "Blocked"
	EventGone    EventKind = "Gone"
	EventSkipped EventKind = "Skipped" // no longer waited for, by policy
	EventWaiting EventKind = "Waiting" // for load balancers or volumes
	EventWarning EventKind = "Warning" // the drain goes on, but someone should know
)

// Event is one change in a drain.
type Event struct {
	Kind EventKind
	Time time.Time
	// Namespace and Name of the pod; "" where the event is about the node.
	Namespace string
	Name      string
	// Reason and Message of what is not as it should be; a pod that leaves needs none.
	Reason  string
	Message string
	// Since when a blocked pod is blocked for that reason.
	Since time.Time
	// Lasting says of a blocked pod that no other pod's health lets it go.
	Lasting bool
	// Total pods that this drain concerns so far, and how many are still there.
	Total     int
	Remaining int
}

// Result is what a drain did.
type Result struct {
	// Evicted pods; Awaited pods were leaving already; Deleted pods were deleted past their budget by policy.
	Evicted, Awaited, Deleted int
	// Requests are the eviction requests sent.
	Requests int
	// Remaining pods, after OnTimeout Proceed or by SkipWaitForDeleteTimeout.
	Remaining []BlockedPod
	// Volumes still attached, after OnVolumesAttached Proceed.
	Volumes []AttachedVolume
	// Duration of the drain.
	Duration time.Duration
}
