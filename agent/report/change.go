package report

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

const (
	// ProgressInterval is the least time between two writes that tell of progress only.
	ProgressInterval = 10 * time.Second
	// AliveInterval is the most time between two writes while an operation runs.
	AliveInterval = 30 * time.Second
)

// Change is how much a report differs from what the API server has.
type Change int

// Nothing changed; progress within an operation; or something that somebody waits for.
const (
	None Change = iota
	Progress
	News
)

// Compare says how much the report differs from the agent's part of a status.
func Compare(have, want v1alpha1.MachineStatus) Change {
	have, want = own(have), own(want)
	if equality.Semantic.DeepEqual(have, want) {
		return None
	}
	if sameState(have.LastOperation, want.LastOperation) {
		have.LastOperation, want.LastOperation = nil, nil
		if equality.Semantic.DeepEqual(have, want) {
			return Progress
		}
	}
	return News
}

// Due is when a report is worth a write, given the time of the last one; ok is false when never.
func Due(change Change, want v1alpha1.MachineStatus, lastWrite time.Time) (at time.Time, ok bool) {
	switch {
	case change == News:
		return time.Time{}, true
	case change == Progress:
		return lastWrite.Add(ProgressInterval), true
	case want.LastOperation != nil && want.LastOperation.State == v1alpha1.OperationProcessing:
		return lastWrite.Add(AliveInterval), true
	}
	return time.Time{}, false
}

// own is the agent's part, without the time of the report itself.
func own(s v1alpha1.MachineStatus) v1alpha1.MachineStatus {
	out := v1alpha1.MachineStatus{
		Host: s.Host, Versions: s.Versions, OS: s.OS, Kubelet: s.Kubelet, Plan: s.Plan, Accepted: s.Accepted,
		HostFailure: s.HostFailure, PassedMinors: s.PassedMinors, RequestedAPIs: s.RequestedAPIs,
		Etcd: s.Etcd, EtcdSnapshot: s.EtcdSnapshot, CertificateEndTime: s.CertificateEndTime,
		ObservedGeneration: s.ObservedGeneration, ObservedEpoch: s.ObservedEpoch,
	}
	if s.LastOperation != nil {
		op := *s.LastOperation
		op.LastUpdateTime = nil
		out.LastOperation = &op
	}
	for _, c := range s.Conditions {
		if slices.Contains(v1alpha1.AgentConditions, c.Type) {
			c.LastTransitionTime = metav1.Time{}
			out.Conditions = append(out.Conditions, c)
		}
	}
	slices.SortFunc(out.Conditions, func(a, b metav1.Condition) int {
		return slices.Index(v1alpha1.AgentConditions, a.Type) - slices.Index(v1alpha1.AgentConditions, b.Type)
	})
	return out
}

// sameState says that two reports of an operation differ in progress at most.
func sameState(a, b *v1alpha1.Operation) bool {
	return a != nil && b != nil && a.ID == b.ID && a.State == b.State
}
