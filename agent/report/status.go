package report

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// State is everything that a report is made from.
type State struct {
	// Base is the status as the API server has it.
	Base v1alpha1.MachineStatus
	// Generation of the spec that the conditions are about.
	Generation int64
	// Spec is the wish: drift is measured against it, and only its packages are reported.
	Spec v1alpha1.MachineSpec
	// Facts of the host; nil before the first probe: what was reported stays.
	Facts *upgrade.Facts
	// Planning is how far the plan for the assignment is; nil when there is no assignment.
	Planning *Planning
	// Accepted is the grant that the agent has accepted.
	Accepted string
	// Operation is the newest operation; nil: what was reported stays.
	Operation *v1alpha1.Operation
	// Passed are the minors that the control plane passes through on its way to spec.
	Passed []v1alpha1.PassedMinor
	// Failure says why the host cannot go on; nil: it can.
	Failure *v1alpha1.Failure
	// Epoch is the highest coordinator epoch seen.
	Epoch int64
	// Held is the veto of the host's owner.
	Held *upgrade.HoldFacts
	// Lock is the package lock that another process holds while a plan waits for its grant; nil: none.
	Lock *Lock
	// Kept is what Refit left on the host, by its own records.
	Kept upgrade.Kept
	// Rebooted are the reasons for which Refit has rebooted the host since it last asked for no reboot.
	Rebooted []string
	// Snapshot is the newest of etcd on this host, by Refit's own record; nil: none, or it is not known.
	Snapshot *v1alpha1.EtcdSnapshot
	// Security is what is known of security updates; nil where nobody has looked.
	Security *Security
	// NewHost says that Base is of another machine with the same name.
	NewHost bool
	// Now is the time of the report.
	Now time.Time
}

// Lock is a package lock that is held.
type Lock struct {
	Holder upgrade.LockFacts
	// Since is when it was first seen so.
	Since time.Time
}

// Planning is how far the plan for an assignment is.
type Planning struct {
	AssignmentID string
	Generation   int64
	// Plan is frozen and staged; nil when it is not, or was refused.
	Plan *upgrade.Plan
	// Refused says why there is no plan; nil while it is being made.
	Refused *v1alpha1.Failure
}

// Status is the agent's part of the status, whole.
func Status(s State) v1alpha1.MachineStatus {
	base := s.Base
	if s.NewHost {
		// The other machine's plan is not on this one. Its acceptance and outcome stay:
		// without them its grant, still in the API, would pass for one that never ran.
		base.Host, base.Versions, base.OS, base.Kubelet, base.Plan = nil, nil, nil, nil, nil
		base.RequestedAPIs, base.Etcd, base.EtcdSnapshot, base.CertificateEndTime = nil, nil, nil, nil
	}
	out := v1alpha1.MachineStatus{
		Host: base.Host, Versions: base.Versions, OS: base.OS, Kubelet: base.Kubelet,
		Plan: base.Plan, Accepted: base.Accepted, LastOperation: base.LastOperation,
		ObservedGeneration: base.ObservedGeneration,
		ObservedEpoch:      max(base.ObservedEpoch, s.Epoch),
		HostFailure:        s.Failure, PassedMinors: s.Passed, RequestedAPIs: base.RequestedAPIs,
		Etcd: base.Etcd, EtcdSnapshot: base.EtcdSnapshot, CertificateEndTime: base.CertificateEndTime,
	}
	if s.Snapshot != nil {
		out.EtcdSnapshot = s.Snapshot
	}
	if s.Facts != nil {
		out.Host, out.Versions, out.OS = s.Facts.Identity(), s.Facts.Versions(), s.Facts.ObservedOS(s.Spec.OS)
		out.Kubelet = s.Facts.ObservedKubelet(s.Spec)
		out.OS.Unmet = unmet(s)
		out.OS.RebootStays = shorten(upgrade.StayingReboot(*s.Facts, s.Rebooted), maxText)
		out.Etcd = observedEtcd(*s.Facts, base.Etcd)
		if end, known := s.Facts.FirstCertificateEnd(); known {
			out.CertificateEndTime = &metav1.Time{Time: end}
		}
		if asked, known := s.Facts.RequestedAPIs(); known {
			out.RequestedAPIs = asked
		}
	}
	if s.Accepted != "" {
		out.Accepted = &v1alpha1.Acceptance{GrantID: s.Accepted}
	}
	reportPlan(&out, s.Planning)
	reportOperation(&out, s)
	out.Conditions = conditions(s, out)
	return withoutCredentials(out)
}

// withoutCredentials: whoever may read a Machine may not therefore read the host's sources.
func withoutCredentials(status v1alpha1.MachineStatus) v1alpha1.MachineStatus {
	text, err := json.Marshal(status)
	if err != nil || !redact.Has(text) {
		return status
	}
	var clean v1alpha1.MachineStatus
	if err := json.Unmarshal(redact.Bytes(text), &clean); err != nil {
		return status
	}
	return clean
}

// maxUnmet is the schema's.
const maxUnmet = 16

func unmet(s State) []string {
	all := s.Kept.Unmet(*s.Facts, s.Spec)
	for i := range all {
		all[i] = shorten(all[i], maxText)
	}
	return all[:min(len(all), maxUnmet)]
}

// reportPlan says nothing new while a plan is being made: the earlier one stays, with
// its own assignment's id on it.
func reportPlan(out *v1alpha1.MachineStatus, p *Planning) {
	switch {
	case p == nil:
	case p.Plan != nil:
		out.Plan, out.ObservedGeneration = planStatus(p.Plan), p.Generation
	case p.Refused != nil:
		out.Plan, out.ObservedGeneration = nil, p.Generation
		if out.HostFailure == nil {
			out.HostFailure = p.Refused
		}
	}
}

func reportOperation(out *v1alpha1.MachineStatus, s State) {
	if s.Operation == nil {
		return
	}
	op := *s.Operation
	now := metav1.NewTime(s.Now.Truncate(time.Second))
	op.LastUpdateTime = &now
	if op.State != v1alpha1.OperationProcessing && sameState(&op, s.Base.LastOperation) {
		op.LastUpdateTime = s.Base.LastOperation.LastUpdateTime // an end is reported once
	}
	out.LastOperation = &op
}
